#include "cli/simulate.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nezha/base/check.h"
#include "nezha/k8s/pod.h"
#include "webhook/annotations.h"

namespace nezha::cli {
namespace {

using webhook::Entry;

std::string value_of(const std::map<std::string, std::string>& labels, const char* key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::string() : found->second;
}

// The controller adds an entry for the selectors of the cluster's rules.
bool selected_by_rule(const std::map<std::string, std::string>& labels, const webhook::Policy& policy) {
  const auto selects = [&](const config::InjectionRule& rule) {
    const bool selects_all = rule.selector.match_labels.empty() && rule.selector.match_expressions.empty();
    return !selects_all && webhook::matches(rule.selector, labels);
  };
  return std::any_of(policy.settings->injection.begin(), policy.settings->injection.end(), selects);
}

std::vector<Entry> entries_for(const k8s::Pod& pod, const Surroundings& around, const webhook::Policy& policy) {
  std::vector<Entry> entries;
  const auto inject = value_of(pod.labels, webhook::kInjectLabel);
  if (inject == "false") return entries;
  // What the other entries could add to a pod that carries the label, this one adds already.
  if (inject == "true") return {Entry::kPod};
  if (value_of(around.namespace_labels, webhook::kInjectLabel) == "true") entries.push_back(Entry::kNamespace);
  if (selected_by_rule(pod.labels, policy)) entries.push_back(Entry::kSelector);
  const bool ancestor_namespace =
      value_of(around.namespace_labels, webhook::kAncestorNamespaceLabel) == webhook::kAncestorNamespaceValue;
  if (ancestor_namespace && pod.label(webhook::kAncestorPodLabel)) entries.push_back(Entry::kAncestor);
  return entries;
}

}  // namespace

Surroundings in_namespace(const Surroundings& around, const std::string& own_namespace) {
  if (own_namespace.empty() || own_namespace == around.name_space.get()) return around;
  Surroundings own = around;
  own.name_space = Namespace(own_namespace);
  if (!around.labels_hold_everywhere) own.namespace_labels.clear();
  return own;
}

std::string without_prefix(const std::string& warning) {
  constexpr std::string_view kPrefix = "nezha: ";
  return warning.starts_with(kPrefix) ? warning.substr(kPrefix.size()) : warning;
}

Simulation simulate(const nlohmann::json& pod, const Surroundings& around, const webhook::Policy& policy) {
  Simulation out;
  const auto readable = k8s::read_pod(pod);
  auto entries = readable ? entries_for(readable.value(), around, policy) : std::vector<Entry>{};
  out.called = !entries.empty();
  if (entries.empty()) entries.push_back(Entry::kPod);
  nlohmann::json now = pod;
  for (const auto entry : entries) {
    Call call{entry, webhook::change_pod(entry, around.name_space, now, policy)};
    if (!out.called) call.change.patch.clear();
    auto patched = k8s::apply_patch(now, call.change.patch);
    NEZHA_CHECK(patched, "change_pod() proved the patch");
    now = std::move(patched.value());
    out.patch.insert(out.patch.end(), call.change.patch.begin(), call.change.patch.end());
    out.calls.push_back(std::move(call));
  }
  return out;
}

}  // namespace nezha::cli
