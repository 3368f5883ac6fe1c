// Auditor: finds pods that should have been changed and were not, because no webhook answered when they were created
// (failurePolicy: Ignore lets them pass). They work, from the real servers. It counts them and writes an Event on each;
// it changes no pod.
//
//   registration (since when, which namespaces not) + namespaces + pods -> what the policy in force says of each
//   -> missed: it would be injected, has no status of ours, runs or waits to, and is younger than the registration
//
// A pod that was created before a rule for it existed counts as well: nothing on it tells the two apart.
// One look reads all pods that opted in, a page at a time, at most once per `every`.
// Threads: one at a time. References are borrowed.
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "nezha/base/clock.h"
#include "nezha/k8s/api_client.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"
#include "webhook/controller/events.h"
#include "webhook/policy.h"

namespace nezha::webhook {

struct AuditorSettings {
  bool enabled = true;
  std::string registration = "nezha";
  std::chrono::milliseconds every{60'000};
};

class Auditor {
 public:
  Auditor(AuditorSettings settings, k8s::ApiClient& api, EventWriter& events, const Clock& clock, obs::Metrics& metrics,
          obs::Log& log);

  // Looks when it is time to. An API that fails is logged once and asked again when it is time again: the count stays.
  void look(const Policy& policy);

 private:
  struct Found;
  Result<> look_now(const Policy& policy, Found& found);
  Result<> look_at(const k8s::Scope& scope, Entry entry, const Policy& policy, Found& found);
  void take(const nlohmann::json& pod, Entry entry, const Policy& policy, Found& found);
  void tell(const Found& found);

  const AuditorSettings settings_;
  k8s::ApiClient& api_;
  EventWriter& events_;
  const Clock& clock_;
  obs::Log& log_;
  obs::Gauge& missed_;
  std::optional<SteadyTime> looked_at_;
  std::set<std::string> told_;  // uids of pods that are missed still, and have their Event
  std::string last_failure_;
};

}  // namespace nezha::webhook
