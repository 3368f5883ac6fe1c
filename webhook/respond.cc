#include "webhook/respond.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "webhook/annotations.h"
#include "webhook/sentence.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::ordered_json;

// Configuration may bring bytes that are no UTF-8; they must not cost the pod its aliases.
std::string json_text(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json alias_item(const AddAlias& alias) { return Json{{"ip", alias.ip}, {"hostnames", alias.hosts}}; }

void append_hosts(const k8s::Pod& pod, const AppendHosts& edit, std::vector<k8s::PatchOp>& ops) {
  const std::string list = "/spec/hostAliases/" + std::to_string(edit.item) + "/hostnames";
  if (pod.host_aliases[edit.item].hostnames_presence != k8s::Presence::kPresent)
    return ops.push_back({list, json_text(edit.hosts)});
  for (const auto& host : edit.hosts) ops.push_back({list + "/-", json_text(host)});
}

void set_annotation(const k8s::Pod& pod, const char* key, const std::string& value, std::vector<k8s::PatchOp>& ops) {
  const Json map{{key, value}};
  if (pod.metadata_presence != k8s::Presence::kPresent)
    return ops.push_back({"/metadata", json_text(Json{{"annotations", map}})});
  if (pod.annotations_presence != k8s::Presence::kPresent)
    return ops.push_back({"/metadata/annotations", json_text(map)});
  ops.push_back({"/metadata/annotations/" + k8s::pointer_token(key), json_text(value)});
}

void add_aliases(const k8s::Pod& pod, const Json& items, std::vector<k8s::PatchOp>& ops) {
  if (items.empty()) return;
  if (pod.host_aliases_presence != k8s::Presence::kPresent)
    return ops.push_back({"/spec/hostAliases", json_text(items)});
  for (const auto& item : items) ops.push_back({"/spec/hostAliases/-", json_text(item)});
}

}  // namespace

std::vector<k8s::PatchOp> to_patch(const k8s::Pod& pod, const std::vector<Edit>& edits) {
  std::vector<k8s::PatchOp> ops;
  Json new_aliases = Json::array();
  for (const auto& edit : edits) {
    if (const auto* append = std::get_if<AppendHosts>(&edit))
      append_hosts(pod, *append, ops);
    else if (const auto* alias = std::get_if<AddAlias>(&edit))
      new_aliases.push_back(alias_item(*alias));
    else if (const auto* status = std::get_if<SetStatus>(&edit))
      set_annotation(pod, kStatusAnnotation, status->value, ops);
  }
  add_aliases(pod, new_aliases, ops);
  // "/-" appends shift no index, so sorting by path keeps every operation valid.
  std::stable_sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return ops;
}

Result<> prove(const nlohmann::json& object, const std::vector<k8s::PatchOp>& patch) {
  if (patch.empty()) return ok();
  NEZHA_TRY(const auto patched, k8s::apply_patch(object, patch));
  NEZHA_TRY(const auto pod, k8s::read_pod(patched));
  (void)pod;
  return ok();
}

std::vector<std::string> to_warnings(const std::vector<std::string>& sentences) {
  constexpr size_t kWarningsMax = 10;  // the API server drops what is over 4096 bytes in all
  constexpr size_t kWarningBytes = 256;
  std::vector<std::string> warnings;
  for (const auto& sentence : sentences) {
    if (warnings.size() == kWarningsMax) break;
    warnings.push_back(shortened("nezha: " + sentence, kWarningBytes));
  }
  return warnings;
}

}  // namespace nezha::webhook
