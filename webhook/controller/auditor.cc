#include "webhook/controller/auditor.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "nezha/k8s/pod.h"
#include "webhook/annotations.h"
#include "webhook/controller/registration.h"
#include "webhook/decide.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;

const k8s::Resource kPods{"", "v1", "pods"};
const k8s::Resource kNamespaces{"", "v1", "namespaces"};
const k8s::Resource kRegistrations{"admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations"};
constexpr size_t kPageItems = 200;
constexpr size_t kEventsMax = 100;  // of one look; the others' turn comes
constexpr const char* kMessage =
    "no webhook of Nezha answered when this pod was created, or its configuration had no rule for it then: the pod "
    "reads "
    "its data from the real servers. Pods that are created now are changed.";

// Nothing where a member on the way is missing.
const Json* member(const Json& object, std::initializer_list<const char*> path) {
  const Json* at = &object;
  for (const char* key : path) {
    const auto found = at->is_object() ? at->find(key) : at->end();
    if (!at->is_object() || found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::string text(const Json& object, std::initializer_list<const char*> path) {
  const Json* value = member(object, path);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

// Namespaces that the registration leaves out by name.
std::set<std::string> excluded_by(const Json& registration) {
  std::set<std::string> out;
  for (const Json& entry : registration.value("webhooks", Json::array())) {
    if (text(entry, {"name"}) != kPodEntry) continue;
    const Json* expressions = member(entry, {"namespaceSelector", "matchExpressions"});
    if (!expressions) continue;
    for (const Json& expression : *expressions) {
      if (text(expression, {"key"}) != "kubernetes.io/metadata.name" || text(expression, {"operator"}) != "NotIn")
        continue;
      for (const Json& name : expression.value("values", Json::array()))
        if (name.is_string()) out.insert(name.get<std::string>());
    }
  }
  return out;
}

}  // namespace

struct Auditor::Found {
  std::string registered_at;  // RFC 3339 in UTC, which compares as text
  std::set<std::string> excluded;
  std::set<std::string> seen;  // uids
  std::vector<ObjectReference> missed;
};

Auditor::Auditor(AuditorSettings settings, k8s::ApiClient& api, EventWriter& events, const Clock& clock,
                 obs::Metrics& metrics, obs::Log& log)
    : settings_(std::move(settings)),
      api_(api),
      events_(events),
      clock_(clock),
      log_(log),
      missed_(metrics.gauge("nezha_webhook_missed_pods",
                            "Pods that opted in, run or wait to, and were not changed when they were created.")) {}

void Auditor::look(const Policy& policy) {
  if (!settings_.enabled || (looked_at_ && clock_.now() - *looked_at_ < settings_.every)) return;
  looked_at_ = clock_.now();
  Found found;
  const auto looked = look_now(policy, found);
  const std::string failure = looked ? "" : looked.error().message;
  if (std::exchange(last_failure_, failure) != failure && !failure.empty())
    log_.warning("cannot look for pods that were missed", {{"why", failure}});
  if (looked) tell(found);
}

Result<> Auditor::look_now(const Policy& policy, Found& found) {
  NEZHA_TRY(const auto live, api_.get(kRegistrations, Namespace(), settings_.registration));
  const Json registration = Json::parse(live, nullptr, false);
  if (!registration.is_object()) return fail(Remedy::kRetryLater, "the registration is no JSON");
  found.registered_at = text(registration, {"metadata", "creationTimestamp"});
  found.excluded = excluded_by(registration);
  const std::string opted_in = std::string(kInjectLabel) + "=true";
  const k8s::Scope by_own_label{kPods, Namespace(), opted_in, ""}, spaces{kNamespaces, Namespace(), opted_in, ""};
  NEZHA_TRY(look_at(by_own_label, Entry::kPod, policy, found));

  std::vector<Namespace> names;
  std::string page_token;
  do {
    NEZHA_TRY(const auto page, api_.list(spaces, kPageItems, page_token));
    const Json list = Json::parse(page, nullptr, false);
    if (!list.is_object()) return fail(Remedy::kRetryLater, "the list of namespaces is no JSON");
    for (const Json& item : list.value("items", Json::array())) names.emplace_back(text(item, {"metadata", "name"}));
    page_token = text(list, {"metadata", "continue"});
  } while (!page_token.empty());
  for (const auto& name : names) {
    const k8s::Scope all_of_one{kPods, name, "", ""};
    NEZHA_TRY(look_at(all_of_one, Entry::kNamespace, policy, found));
  }
  return ok();
}

Result<> Auditor::look_at(const k8s::Scope& scope, Entry entry, const Policy& policy, Found& found) {
  std::string page_token;
  do {
    NEZHA_TRY(const auto page, api_.list(scope, kPageItems, page_token));
    const Json list = Json::parse(page, nullptr, false);
    if (!list.is_object()) return fail(Remedy::kRetryLater, "the list of pods is no JSON");
    for (const Json& item : list.value("items", Json::array())) take(item, entry, policy, found);
    page_token = text(list, {"metadata", "continue"});
  } while (!page_token.empty());
  return ok();
}

void Auditor::take(const Json& object, Entry entry, const Policy& policy, Found& found) {
  const std::string name_space = text(object, {"metadata", "namespace"}), uid = text(object, {"metadata", "uid"});
  const std::string phase = text(object, {"status", "phase"});
  if (found.excluded.contains(name_space) || phase == "Succeeded" || phase == "Failed") return;
  if (text(object, {"metadata", "creationTimestamp"}) < found.registered_at) return;
  const auto pod = k8s::read_pod(object);
  if (!pod || pod.value().annotation(kStatusAnnotation)) return;
  if (decide(entry, Namespace(name_space), pod.value(), policy).verdict != Verdict::kInject) return;
  if (found.seen.insert(uid).second) found.missed.push_back({"Pod", Namespace(name_space), pod.value().name, uid, ""});
}

void Auditor::tell(const Found& found) {
  missed_.set(static_cast<double>(found.missed.size()));
  std::set<std::string> told;
  size_t events = 0;
  for (const auto& pod : found.missed) {
    if (!told_.contains(pod.uid)) {
      if (events++ >= kEventsMax) continue;
      log_.warning("a pod was missed", {{"pod", pod.name_space.get() + "/" + pod.name}});
      events_.add({pod, true, "NezhaMissed", kMessage});
    }
    told.insert(pod.uid);
  }
  told_ = std::move(told);
}

}  // namespace nezha::webhook
