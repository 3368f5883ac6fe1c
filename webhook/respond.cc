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

void set_annotations(const k8s::Pod& pod, const Json& map, std::vector<k8s::PatchOp>& ops) {
  if (map.empty()) return;
  if (pod.metadata_presence != k8s::Presence::kPresent)
    return ops.push_back({"/metadata", json_text(Json{{"annotations", map}})});
  if (pod.annotations_presence != k8s::Presence::kPresent)
    return ops.push_back({"/metadata/annotations", json_text(map)});
  for (const auto& [key, value] : map.items())
    ops.push_back({"/metadata/annotations/" + k8s::pointer_token(key), json_text(value)});
}

// The whole list where there is none, else one item after the other at its end.
void append(const std::string& list, k8s::Presence presence, const Json& items, std::vector<k8s::PatchOp>& ops) {
  if (items.empty()) return;
  if (presence != k8s::Presence::kPresent) return ops.push_back({list, json_text(items)});
  for (const auto& item : items) ops.push_back({list + "/-", json_text(item)});
}

void add_init_container(const k8s::Pod& pod, const AddInitContainer& edit, std::vector<k8s::PatchOp>& ops) {
  const std::string list = "/spec/initContainers";
  if (pod.init_containers_presence != k8s::Presence::kPresent) return ops.push_back({list, '[' + edit.json + ']'});
  const auto is_init = [](const k8s::Container& container) { return container.is_init; };
  const auto count = std::count_if(pod.containers.begin(), pod.containers.end(), is_init);
  const bool at_end = edit.position == static_cast<size_t>(count);
  ops.push_back({list + (at_end ? "/-" : '/' + std::to_string(edit.position)), edit.json});
}

void add_sysctls(const k8s::Pod& pod, const Json& items, std::vector<k8s::PatchOp>& ops) {
  if (items.empty()) return;
  if (pod.security_context_presence != k8s::Presence::kPresent)
    return ops.push_back({"/spec/securityContext", json_text(Json{{"sysctls", items}})});
  append("/spec/securityContext/sysctls", pod.sysctls_presence, items, ops);
}

}  // namespace

std::vector<k8s::PatchOp> to_patch(const k8s::Pod& pod, const std::vector<Edit>& edits) {
  std::vector<k8s::PatchOp> ops;
  Json aliases = Json::array(), volumes = Json::array(), sysctls = Json::array(), annotations = Json::object();
  for (const auto& edit : edits) {
    if (const auto* append_to = std::get_if<AppendHosts>(&edit))
      append_hosts(pod, *append_to, ops);
    else if (const auto* alias = std::get_if<AddAlias>(&edit))
      aliases.push_back(alias_item(*alias));
    else if (const auto* annotation = std::get_if<SetAnnotation>(&edit))
      annotations[annotation->key] = annotation->value;
    else if (const auto* container = std::get_if<AddInitContainer>(&edit))
      add_init_container(pod, *container, ops);
    else if (const auto* volume = std::get_if<AddVolume>(&edit))
      volumes.push_back(Json::parse(volume->json));
    else if (const auto* sysctl = std::get_if<AddSysctl>(&edit))
      sysctls.push_back(Json{{"name", sysctl->name}, {"value", sysctl->value}});
  }
  set_annotations(pod, annotations, ops);
  append("/spec/hostAliases", pod.host_aliases_presence, aliases, ops);
  append("/spec/volumes", pod.volumes_presence, volumes, ops);
  add_sysctls(pod, sysctls, ops);
  // No list is both named by index and inserted into, so sorting by path keeps every operation valid.
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
