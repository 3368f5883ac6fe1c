// AdminServer: health, readiness and metrics of the webhook, as plain HTTP on a port of its own.
//
//   GET /healthz  200 "ok" while the process runs
//   GET /readyz   200 or 503, with a line per condition that says what is missing
//   GET /metrics  the Prometheus text format
// It tells no configuration and changes nothing.
// Threads: start() and stop() from one thread; answers come from threads of its own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nezha/base/result.h"
#include "nezha/obs/metrics.h"
#include "webhook/controller/readiness.h"

namespace nezha::webhook {

class AdminServer {
 public:
  // The references are borrowed and must outlive the server.
  AdminServer(const Readiness& readiness, const obs::Metrics& metrics);
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  // Binds and serves; returns the port (the given one, or a free one for 0). kGiveUp: the address is not free.
  [[nodiscard]] Result<uint16_t> start(const std::string& address, uint16_t port);
  void stop();  // idempotent

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nezha::webhook
