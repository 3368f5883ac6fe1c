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

void trust_container(const k8s::Pod& pod, const TrustAddition& addition, std::vector<k8s::PatchOp>& ops) {
  const auto& container = pod.containers[addition.container];
  const std::string path =
      std::string("/spec/") + (container.is_init ? "initContainers/" : "containers/") + std::to_string(container.item);
  Json mounts = Json::array(), variables = Json::array();
  for (const auto& mount : addition.mounts) {
    mounts.push_back({{"name", kTrustVolume}, {"mountPath", mount.path}, {"readOnly", true}});
    if (!mount.sub_path.empty()) mounts.back()["subPath"] = mount.sub_path;
  }
  for (const auto& variable : addition.variables)
    variables.push_back({{"name", variable.name}, {"value", variable.value}});
  for (const auto& longer : addition.extended)
    ops.push_back({path + "/env/" + std::to_string(longer.item) + "/value", json_text(longer.value)});
  append(path + "/volumeMounts", container.mounts_presence, mounts, ops);
  append(path + "/env", container.env_presence, variables, ops);
}

// A container is named by its place before another one is inserted; all other operations go by path.
bool goes_before(const k8s::PatchOp& a, const k8s::PatchOp& b) {
  const auto key = [](const k8s::PatchOp& op) {
    const std::string list = "/spec/initContainers/";
    const bool inserts = op.path.starts_with(list) && op.path.find('/', list.size()) == std::string::npos;
    return inserts ? list + '~' : op.path;
  };
  return key(a) < key(b);
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
    else if (const auto* trust = std::get_if<TrustContainer>(&edit))
      trust_container(pod, trust->addition, ops);
  }
  set_annotations(pod, annotations, ops);
  append("/spec/hostAliases", pod.host_aliases_presence, aliases, ops);
  append("/spec/volumes", pod.volumes_presence, volumes, ops);
  add_sysctls(pod, sysctls, ops);
  std::stable_sort(ops.begin(), ops.end(), goes_before);
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
