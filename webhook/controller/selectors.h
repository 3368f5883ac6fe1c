// Which pods the API server has to send us beyond those that the chart's static entries select: the rules' selectors
// -> one entry each of the MutatingWebhookConfiguration. Pure.
// Threads: any.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "nezha/base/named.h"
#include "webhook/policy.h"

namespace nezha::webhook {

inline constexpr std::string_view kSelectorEntryPrefix = "selector-";

// A selector that some rule has, and where that rule holds.
struct WantedSelector {
  config::LabelSelector selector;
  bool everywhere = false;          // a rule of the admin's
  std::set<Namespace> name_spaces;  // rules of these namespaces; without meaning when everywhere
};

// By entry name, "selector-<hash of the selector>.nezha.io". Selectors that the static entry pod.nezha.io covers
// already (they ask for nezha.io/inject=true) are left out.
std::map<std::string, WantedSelector> wanted_selectors(const Policy& policy);

// The entry's JSON: rules, service, policies and time limit of the static entry, which selects pods in the namespaces
// that it does not exclude; path /mutate/selector; the selector, and never a pod that opted out by its label.
// The namespaces of `always_excluded` are excluded whatever the static entry says.
nlohmann::json selector_entry(const nlohmann::json& static_entry, const std::string& name, const WantedSelector& wanted,
                              const std::set<Namespace>& always_excluded);

}  // namespace nezha::webhook
