#include "webhook/status.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"

namespace nezha::webhook {
namespace {

void append_new(std::vector<std::string>& list, const std::vector<std::string>& more) {
  std::set<std::string> present(list.begin(), list.end());
  for (const auto& item : more)
    if (present.insert(item).second) list.push_back(item);
}

// Null unless the member is a list of strings.
std::optional<std::vector<std::string>> strings(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_array()) return std::nullopt;
  for (const auto& item : *found)
    if (!item.is_string()) return std::nullopt;
  return found->get<std::vector<std::string>>();
}

}  // namespace

std::string write_status(const Status& status) {
  std::string rules;
  for (const auto& rule : status.rules) rules += (rules.empty() ? "" : ",") + rule;
  nlohmann::ordered_json json{{"rule", rules}, {"mode", status.mode}, {"hosts", status.hosts}};
  if (status.hosts_more > 0) json["hostsMore"] = status.hosts_more;
  json["reasons"] = status.reasons;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::optional<Status> read_status(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto rule = json.find("rule"), mode = json.find("mode");
  auto hosts = strings(json, "hosts"), reasons = strings(json, "reasons");
  if (rule == json.end() || !rule->is_string() || mode == json.end() || !mode->is_string() || !hosts || !reasons)
    return std::nullopt;
  Status status{{}, mode->get<std::string>(), std::move(*hosts), 0, std::move(*reasons)};
  const auto names = rule->get<std::string>();
  if (!names.empty())
    for (const auto name : split(names, ',')) status.rules.emplace_back(name);
  const auto more = json.find("hostsMore");
  if (more != json.end() && more->is_number_unsigned()) status.hosts_more = more->get<size_t>();
  return status;
}

Status join(Status earlier, const Status& now) {
  if (earlier.mode != "sidecar") earlier.mode = now.mode;
  append_new(earlier.rules, now.rules);
  append_new(earlier.hosts, now.hosts);
  append_new(earlier.reasons, now.reasons);
  earlier.hosts_more = std::max(earlier.hosts_more, now.hosts_more);
  if (earlier.hosts.size() > limits::kStatusHostsMax) {
    earlier.hosts_more = std::max(earlier.hosts_more, earlier.hosts.size() - limits::kStatusHostsMax);
    earlier.hosts.resize(limits::kStatusHostsMax);
  }
  if (earlier.reasons.size() > limits::kStatusReasonsMax) earlier.reasons.resize(limits::kStatusReasonsMax);
  return earlier;
}

}  // namespace nezha::webhook
