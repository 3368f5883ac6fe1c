// A cluster and replicas of TrustKeeper in it, driven by hand: what the watches would say is read from the fake server.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nezha/base/limits.h"
#include "test/support/fake_api_server.h"
#include "test/support/manual_clock.h"
#include "test/support/temporary_directory.h"
#include "webhook/controller/trust_keeper.h"

namespace nezha::test {

inline constexpr const char* kCaSecret = "/api/v1/namespaces/nezha-system/secrets/nezha-ca";
inline constexpr const char* kLeafSecret = "/api/v1/namespaces/nezha-system/secrets/nezha-cache-tls";

std::string bundle_path(const std::string& name_space);  // of the ConfigMap nezha-trust
std::string sidecar_secret_path(const std::string& name_space);

// Lives in seconds, so that a test walks through years in a few hundred steps.
webhook::TrustTimes short_trust_times();

class TrustWorld {
 public:
  TrustWorld();  // with a registration and the chart's empty Secrets

  // An intercepting upstream with these hosts; sidecars are configured or not.
  void intercept(const std::vector<std::string>& hosts, bool sidecars = false);
  void label(const std::string& name_space) { labelled_.insert(Namespace(name_space)); }
  void forget_label(const std::string& name_space) { labelled_.erase(Namespace(name_space)); }

  webhook::TrustView view() const;
  webhook::TrustKeeperSettings settings() const;

  // Every leaf of the central cache holds under each bundle that names its host; the same of sidecars in their
  // namespaces. Empty when it is so, else what does not hold.
  std::string broken() const;
  std::vector<std::string> bundle_hosts(const std::string& name_space) const;
  std::vector<std::string> leaf_hosts(const std::string& secret_path) const;

  FakeApiServer server;
  ManualClock clock;

 private:
  std::shared_ptr<const webhook::Policy> policy_;
  std::set<Namespace> labelled_;
  TemporaryDirectory directory_;
};

class TrustReplica {
 public:
  explicit TrustReplica(TrustWorld& world);

  // One pass; the error's message, empty when it went through.
  std::string reconcile();
  void settle(int passes = 4);
  void note(const std::string& name_space) { keeper_.note(Namespace(name_space)); }
  bool soon_due() const { return keeper_.soon_due(); }
  std::string metrics() const { return metrics_->expose(); }

 private:
  TrustWorld& world_;
  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();
  k8s::ApiClient api_;
  webhook::TrustKeeper keeper_;
};

}  // namespace nezha::test
