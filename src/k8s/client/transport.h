// Transport: one kept-alive HTTP(S) connection to the API server; cpp-httplib stays behind it.
// Request -> status and body, or a body in pieces. Adds the bearer token, checks the server's certificate, bounds
// time and size. It knows nothing of Kubernetes objects, and repeats nothing.
// Threads: requests of one Transport run one after the other; stop() may be called from any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "nezha/base/result.h"
#include "nezha/k8s/api_server.h"

namespace nezha::k8s {

struct WireRequest {
  std::string method;
  std::string target;  // path and query, already percent-encoded
  std::string body;
  std::string content_type;  // empty: no body
};

struct WireAnswer {
  int status = 0;
  std::string body;  // only of what no receiver took
};

struct TransportLimits {
  std::chrono::milliseconds connect;
  std::chrono::milliseconds silence;  // the longest wait for the next bytes
  size_t body_bytes_max;
};

class Transport {
 public:
  // Gets a successful answer's body piece by piece; false ends the request.
  using Receiver = std::function<bool(std::string_view bytes)>;

  Transport(ApiServer server, TransportLimits limits);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  // kFixInput: the URL or a file is wrong. kRetryHere: a connection kept from an earlier request turned out to be
  // closed before any answer. kRetryLater: no connection, cut short, too slow, too long, stopped.
  // `receiver` may be null; it gets the body of a 200 only, and then no size limit holds.
  [[nodiscard]] Result<WireAnswer> send(const WireRequest& request, const Receiver& receiver = nullptr);

  // Cuts a pending request; it and later ones fail with kRetryLater. Returns when none is pending.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Percent-encodes everything but unreserved characters, for a query value or a path segment.
std::string percent_encode(std::string_view text);

}  // namespace nezha::k8s
