// AdminServer: health, readiness and metrics on a port of their own, off the data path (cpp-httplib, own threads).
//   GET /healthz  200 while the process runs
//   GET /readyz   200 when requests are served, else 503 with what is missing, one line
//   GET /metrics  Prometheus text
// Threads: start and destroy from one thread; the callbacks are called from the server's threads.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "nezha/base/result.h"
#include "nezha/config/settings.h"

namespace nezha::cache {

class AdminServer {
 public:
  virtual ~AdminServer() = default;  // stops and joins
  virtual uint16_t port() const = 0;
};

struct AdminCallbacks {
  std::function<std::string()> not_ready_because;  // empty: ready
  std::function<std::string()> metrics;
};

// Fails with kFixInput: the address cannot be bound.
Result<std::unique_ptr<AdminServer>> start_admin_server(const config::ListenAddress& address, AdminCallbacks callbacks);

}  // namespace nezha::cache
