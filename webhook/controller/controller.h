// Controller: the one thread beside the admission server that keeps configuration, certificates and registration.
//
//   watches (their own threads) -> inbox -> this thread: PolicyBuilder -> PolicyStore, Events
//                                                        TlsKeeper     -> certificate in force, registration
//                                                        Auditor       -> pods that were missed, Events
//                                                        TrustKeeper   -> certificates of intercepted hosts, bundles
// Watches of the Secret and the registration only say that something changed; TlsKeeper reads both itself.
// A failed pass is repeated with a growing delay; a pass is made now and then without any change, for what time brings.
//
// Threads: start(), stop() and the destructor from one thread, note_untrusted() from any; all references are borrowed
// and outlive the controller.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "nezha/base/clock.h"
#include "nezha/base/named.h"
#include "nezha/k8s/api_server.h"
#include "nezha/k8s/watch.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"
#include "webhook/certs.h"
#include "webhook/controller/auditor.h"
#include "webhook/controller/readiness.h"
#include "webhook/controller/tls_keeper.h"
#include "webhook/controller/trust_keeper.h"
#include "webhook/policy.h"

namespace nezha::webhook {

struct ControllerSettings {
  TlsKeeperSettings tls;  // holds the release's namespace too
  std::string admin_config = "nezha-config";
  std::string ancestor_config = "hostaliases-config";
  TrustKeeperSettings trust;
  std::string cache_service = "nezha-cache";
  std::string intercept_service = "nezha-cache-tls";  // of the same cache, for pods that trust its certificates
  std::optional<IpAddress> cache_address;             // pinned: the Service is not watched
  bool delegation = true;                             // false: ConfigMaps of other namespaces are not watched
  AuditorSettings audit;
  k8s::WatchOptions watch;
  std::chrono::milliseconds resync{30'000};    // between passes when nothing happens
  std::chrono::milliseconds soon{1'000};       // the same while something is under way
  std::chrono::milliseconds retry_first{200};  // after a failed pass, doubling
  std::chrono::milliseconds retry_max{30'000};
};

class Controller {
 public:
  Controller(ControllerSettings settings, const k8s::ApiServer& api_server, PolicyStore& policies,
             LiveCertificate& certificate, Readiness& readiness, const Clock& clock, obs::Metrics& metrics,
             obs::Log& log);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  void start();
  // A pod of that namespace could have used interception if the namespace had a bundle. Only remembers it.
  void note_untrusted(const Namespace& name_space);
  void stop();  // cuts what is pending and returns once all threads have ended; idempotent

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nezha::webhook
