// AdminServer: health, readiness and metrics on a port of their own, off the data path (cpp-httplib, own threads).
//   GET /healthz  200 while the process runs
//   GET /readyz   200 when requests are served, else 503 with what is missing, one line
//   GET /metrics  Prometheus text
//   POST /purge, POST /events/s3  what cache/purge/purge.h does with the body; 200 with its JSON
//   POST /prefetch, GET /prefetch  cache/prefetch/prefetch.h: begins a job, tells how far jobs are
// The last two lines ask for the token of the file `listen.adminTokenFile`, which is read for each request:
// `Authorization: Bearer TOKEN`, or Basic with the token as the password. 401 without it, 403 when there is no such
// file configured.
// A connection carries one request. One that is slow with it is closed; 127 of them keep nobody waiting.
// Threads: start and destroy from one thread; the callbacks are called from the server's threads.
#pragma once

#include <chrono>
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

inline constexpr std::chrono::seconds kAdminRequestTime{10};

struct AdminCallbacks {
  std::function<std::string()> not_ready_because;  // empty: ready
  std::function<std::string()> metrics;
  // The answers, as JSON; kFixInput: the body is wrong. They may block.
  std::function<Result<std::string>(std::string_view json)> purge;
  std::function<Result<std::string>(std::string_view json)> take_events;
  std::function<Result<std::string>(std::string_view json)> prefetch;
  std::function<std::string()> prefetch_report;
};

// Fails with kFixInput: the address cannot be bound.
// `token_path`: of the token file; empty: nobody may POST. `request_time`: for all of a request to come.
Result<std::unique_ptr<AdminServer>> start_admin_server(const config::ListenAddress& address, std::string token_path,
                                                        AdminCallbacks callbacks,
                                                        std::chrono::milliseconds request_time = kAdminRequestTime);

// Whether the cache with this admin port of 127.0.0.1, most likely another process, answers that it is ready.
// Blocks for at most a few seconds.
bool is_ready(uint16_t port);

}  // namespace nezha::cache
