// AdmissionServer: the HTTPS edge of the webhook. Bytes of a request -> admit() -> bytes of the answer.
//
//   POST /mutate, /mutate/namespace, /mutate/selector, /mutate/ancestor   a review (webhook/policy.h, Entry)
//   GET  /healthz                                                         200 while the server runs
//
// Statuses: 200 with a review; 400 malformed review; 404 unknown path; 405 wrong method; 413 body over
// limits::kReviewBytesMax; 415 not application/json, or packed; 408 and 411 as HTTP has them. Every error has a JSON
// body {"message": "..."}. A request that waits for bytes longer than the read timeout is closed; an idle connection
// after the idle timeout. Certificates come from a CertificateSource at every handshake, so a rotation needs no
// restart.
//
// Threads: run() blocks its caller; stop() and port() may be called from any other thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "nezha/base/clock.h"
#include "nezha/base/result.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"
#include "webhook/certificate_source.h"
#include "webhook/policy.h"

namespace nezha::webhook {

struct ServeSettings {
  std::string address = "0.0.0.0";
  uint16_t port = 8443;          // 0: any free port, see AdmissionServer::port()
  size_t connections_max = 512;  // each has a thread while it is open; one more closes the longest idle one
  std::chrono::milliseconds read_timeout{5'000};      // silence inside a request, and inside an answer
  std::chrono::milliseconds request_timeout{10'000};  // from the head of a request to the end of its body
  std::chrono::seconds idle_timeout{120};  // a kept-alive connection between two requests; API servers close after 90 s
  // After stop(): how long reviews are still accepted, with `Connection: close`, while the Service's endpoints
  // forget this replica. What is in flight then is finished.
  std::chrono::milliseconds drain_grace{10'000};
  // Told of each review with Answer::untrusted; called on the review's thread, so it must not wait. Null: nobody is.
  std::function<void(const Namespace&)> on_untrusted = {};
};

class AdmissionServer {
 public:
  // All references are borrowed and must outlive the server.
  AdmissionServer(ServeSettings settings, const PolicyStore& policies, const CertificateSource& certificates,
                  const Clock& clock, obs::Metrics& metrics, obs::Log& log);
  ~AdmissionServer();
  AdmissionServer(const AdmissionServer&) = delete;
  AdmissionServer& operator=(const AdmissionServer&) = delete;

  // Binds the address. Connections queue up until run(). Fails with kGiveUp and the reason.
  [[nodiscard]] Result<> bind();
  // The bound port. REQUIRES: bind() succeeded.
  uint16_t port() const;
  // Serves until stop() and the drain after it are over. Returns at once if stop() was called before.
  // REQUIRES: bind() succeeded; called once.
  void run();
  // Begins the drain; a second call ends its grace period. Returns at once. Not from a signal handler.
  void stop();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nezha::webhook
