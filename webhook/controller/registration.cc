#include "webhook/controller/registration.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nezha/pki/base64.h"
#include "nezha/pki/certificates.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;

const Json& entries_of(const Json& live) {
  static const Json kNone = Json::array();
  const auto entries = live.find("webhooks");
  return entries != live.end() && entries->is_array() ? *entries : kNone;
}

std::string text_at(const Json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string();
}

bool is_selector_entry(const std::string& name) { return name.starts_with(kSelectorEntryPrefix); }

const Json* find_entry(const Json& live, const std::string& name) {
  for (const Json& entry : entries_of(live)) {
    if (text_at(entry, "name") == name) return &entry;
  }
  return nullptr;
}

std::set<std::string> cas_of(const Json& entry) {
  const auto client = entry.find("clientConfig");
  if (client == entry.end()) return {};
  const auto bundle = pki::base64_decode(text_at(*client, "caBundle"));
  if (!bundle) return {};
  const auto cas = pki::split_bundle(bundle.value());
  return {cas.begin(), cas.end()};
}

std::string bundle_of(const std::vector<std::string>& cas) {
  std::string out;
  for (const std::string& ca : cas) out += ca;
  return pki::base64_encode(out);
}

void set_bundle(Json& entry, const std::string& bundle) {
  if (!entry.is_object()) return;
  const auto client = entry.find("clientConfig");
  if (client != entry.end() && client->is_object()) (*client)["caBundle"] = bundle;
}

std::string service_problem(const std::string& name, const Json& entry, const std::string& service,
                            const Namespace& name_space) {
  const auto client = entry.find("clientConfig");
  if (client == entry.end() || !client->is_object() || !client->contains("service"))
    return {};  // a URL: somebody's own arrangement
  const Json& named = client->at("service");
  const std::string target = text_at(named, "namespace") + "/" + text_at(named, "name");
  const std::string ours = name_space.get() + "/" + service;
  if (target == ours) return {};
  return "entry " + name + " calls the Service " + target + " and not ours, " + ours +
         "; run the webhook with the release's --service and --namespace, or repair the entry with helm upgrade";
}

std::string trust_problem(const std::string& name, const Json& entry, const std::string& ca_pem) {
  const auto cas = cas_of(entry);
  if (cas.count(ca_pem) != 0) return {};
  if (cas.empty()) return "entry " + name + " has an empty caBundle, so the API server cannot trust the webhook";
  return "entry " + name + " trusts another CA than the one that signed the webhook's certificate";
}

}  // namespace

std::set<std::string> registered_cas(const Json& live) {
  std::set<std::string> common;
  bool first = true;
  for (const Json& entry : entries_of(live)) {
    const auto cas = cas_of(entry);
    if (first)
      common = cas;
    else
      std::erase_if(common, [&](const std::string& ca) { return cas.count(ca) == 0; });
    first = false;
  }
  return common;
}

Json desired_registration(const Json& live, const WantedRegistration& wanted) {
  Json out = live;
  const Json* pod_entry = find_entry(live, kPodEntry);
  Json entries = Json::array();
  std::set<std::string> present;
  for (const Json& entry : entries_of(live)) {
    const std::string name = text_at(entry, "name");
    const auto selector = wanted.selectors.find(name);
    if (selector != wanted.selectors.end() && pod_entry != nullptr) {
      entries.push_back(selector_entry(*pod_entry, name, selector->second, wanted.always_excluded));
      present.insert(name);
    } else if (!is_selector_entry(name) || wanted.kept.count(name) != 0 || selector != wanted.selectors.end()) {
      entries.push_back(entry);
    }
  }
  for (const auto& [name, selector] : wanted.selectors) {
    if (present.count(name) != 0 || pod_entry == nullptr) continue;
    entries.push_back(selector_entry(*pod_entry, name, selector, wanted.always_excluded));
  }
  const std::string bundle = bundle_of(wanted.cas);
  for (Json& entry : entries) set_bundle(entry, bundle);
  if (!entries.empty() || out.contains("webhooks")) out["webhooks"] = std::move(entries);
  return out;
}

std::set<std::string> selector_entries(const Json& live) {
  std::set<std::string> out;
  for (const Json& entry : entries_of(live)) {
    const std::string name = text_at(entry, "name");
    if (is_selector_entry(name)) out.insert(name);
  }
  return out;
}

std::vector<std::string> registration_problems(const Json& live, const std::string& service,
                                               const Namespace& name_space, const std::string& current_ca_pem) {
  std::vector<std::string> problems;
  if (find_entry(live, kPodEntry) == nullptr) {
    problems.push_back(std::string("it has no entry ") + kPodEntry +
                       ", so labelled pods are not sent to the webhook; repair it with helm upgrade");
  }
  for (const Json& entry : entries_of(live)) {
    const std::string name = text_at(entry, "name");
    const std::string problem = service_problem(name, entry, service, name_space);
    if (!problem.empty()) problems.push_back(problem);
    const std::string trust = trust_problem(name, entry, current_ca_pem);
    if (!trust.empty()) problems.push_back(trust);
  }
  return problems;
}

}  // namespace nezha::webhook
