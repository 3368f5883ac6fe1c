// The MutatingWebhookConfiguration as it is -> what is wrong with it, and what it should be. Pure.
// The chart owns its static entries; here only their caBundle is written. Entries named selector-* are ours.
// Threads: any.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "nezha/base/named.h"
#include "webhook/controller/selectors.h"

namespace nezha::webhook {

inline constexpr const char* kPodEntry = "pod.nezha.io";

// CAs (canonical PEM) that every entry trusts.
std::set<std::string> registered_cas(const nlohmann::json& live);

struct WantedRegistration {
  std::vector<std::string> cas;                     // for every entry's caBundle, in this order
  std::map<std::string, WantedSelector> selectors;  // by entry name
  std::set<std::string> kept;                       // selector entries that are no longer wanted, but not dropped yet
  std::set<Namespace> always_excluded;
};

// `live` as it should be; equal to `live` when nothing is to do. Without the static pod entry no selector entry is
// added, because there is nothing to copy from.
nlohmann::json desired_registration(const nlohmann::json& live, const WantedRegistration& wanted);

// Names of the selector entries in it.
std::set<std::string> selector_entries(const nlohmann::json& live);

// Lines for a person, empty when all is well: entries missing, another Service than ours, no caBundle.
std::vector<std::string> registration_problems(const nlohmann::json& live, const std::string& service,
                                               const Namespace& name_space, const std::string& current_ca_pem);

}  // namespace nezha::webhook
