#include "nezha/k8s/pod.h"

#include <nlohmann/json.hpp>

namespace nezha::k8s {
namespace {

using Json = nlohmann::json;

// Reads members one by one; the first that has another type than the API's stops it, and its path is the error.
class Reader {
 public:
  Result<Pod> read(const Json& object) {
    if (!object.is_object()) return fail(Remedy::kFixInput, "the object is not a pod: not a JSON object");
    read_metadata(object);
    read_spec(object);
    if (!error_.empty()) return fail(Remedy::kFixInput, std::move(error_));
    return std::move(pod_);
  }

 private:
  // The member, or null when it is absent or JSON null.
  static const Json* member(const Json& object, const char* key, Presence* presence = nullptr) {
    const auto found = object.find(key);
    const bool absent = found == object.end();
    if (presence) *presence = absent ? Presence::kAbsent : found->is_null() ? Presence::kNull : Presence::kPresent;
    return absent || found->is_null() ? nullptr : &*found;
  }

  void complain(const std::string& path, const char* wanted) {
    if (error_.empty()) error_ = path + " is not " + wanted;
  }

  bool is_object(const Json& value, const std::string& path) {
    if (!value.is_object()) complain(path, "an object");
    return value.is_object();
  }

  std::string text(const Json& object, const char* key, const std::string& path) {
    const Json* value = member(object, key);
    if (value && !value->is_string()) complain(path + '.' + key, "a string");
    return value && value->is_string() ? value->get<std::string>() : std::string();
  }

  std::map<std::string, std::string> texts(const Json& object, const char* key, Presence* presence = nullptr) {
    std::map<std::string, std::string> out;
    const Json* map = member(object, key, presence);
    const std::string path = std::string("metadata.") + key;
    if (!map || !is_object(*map, path)) return out;
    for (const auto& [name, value] : map->items()) {
      if (value.is_string())
        out[name] = value.get<std::string>();
      else if (value.is_null())
        out[name];  // Go's decoder reads null as ""
      else
        complain(path + "[\"" + name + "\"]", "a string; put it in quotes");
    }
    return out;
  }

  // The items of a list, none when it is absent or null.
  const Json& list(const Json& object, const char* key, const std::string& path, Presence* presence = nullptr) {
    static const Json kEmpty = Json::array();
    const Json* items = member(object, key, presence);
    if (!items) return kEmpty;
    if (items->is_array()) return *items;
    complain(path + '.' + key, "a list");
    return kEmpty;
  }

  void read_metadata(const Json& object) {
    const Json* metadata = member(object, "metadata", &pod_.metadata_presence);
    if (!metadata || !is_object(*metadata, "metadata")) return;
    pod_.name = text(*metadata, "name", "metadata");
    pod_.generate_name = text(*metadata, "generateName", "metadata");
    pod_.labels = texts(*metadata, "labels");
    pod_.annotations = texts(*metadata, "annotations", &pod_.annotations_presence);
  }

  void read_spec(const Json& object) {
    const Json* spec = member(object, "spec");
    if (!spec) return complain("spec", "an object");
    if (!is_object(*spec, "spec")) return;
    const Json* host_network = member(*spec, "hostNetwork");
    if (host_network && !host_network->is_boolean()) complain("spec.hostNetwork", "true or false");
    pod_.host_network = host_network && host_network->is_boolean() && host_network->get<bool>();
    read_aliases(*spec);
    read_volumes(*spec);
    read_security_context(*spec);
    const Json* resources = member(*spec, "resources");
    pod_.has_pod_resources = resources && !resources->empty();
    const Json* os = member(*spec, "os");
    pod_.is_windows = os && is_object(*os, "spec.os") && text(*os, "name", "spec.os") == "windows";
    member(*spec, "initContainers", &pod_.init_containers_presence);
    for (const char* key : {"initContainers", "containers", "ephemeralContainers"}) read_containers(*spec, key);
  }

  void read_aliases(const Json& spec) {
    const Json& items = list(spec, "hostAliases", "spec", &pod_.host_aliases_presence);
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string path = "spec.hostAliases[" + std::to_string(i) + "]";
      if (!is_object(items[i], path)) return;
      HostAlias alias;
      alias.ip = text(items[i], "ip", path);
      for (const Json& name : list(items[i], "hostnames", path, &alias.hostnames_presence)) {
        if (name.is_string())
          alias.hostnames.push_back(name.get<std::string>());
        else
          complain(path + ".hostnames", "a list of strings");
      }
      pod_.host_aliases.push_back(std::move(alias));
    }
  }

  void read_volumes(const Json& spec) {
    for (const Json& volume : list(spec, "volumes", "spec", &pod_.volumes_presence))
      if (is_object(volume, "spec.volumes[]")) read_volume(volume);
  }

  void read_volume(const Json& volume) {
    const std::string name = text(volume, "name", "spec.volumes[]");
    pod_.volumes.insert(name);
    const Json* config_map = member(volume, "configMap");
    if (config_map && is_object(*config_map, "spec.volumes[].configMap"))
      pod_.config_map_volumes[name] = text(*config_map, "name", "spec.volumes[].configMap");
  }

  void read_security_context(const Json& spec) {
    const std::string path = "spec.securityContext";
    const Json* context = member(spec, "securityContext", &pod_.security_context_presence);
    if (!context || !is_object(*context, path)) return;
    pod_.has_fs_group = member(*context, "fsGroup") != nullptr;
    for (const Json& item : list(*context, "sysctls", path, &pod_.sysctls_presence)) {
      const std::string item_path = path + ".sysctls[]";
      if (is_object(item, item_path))
        pod_.sysctls.push_back({text(item, "name", item_path), text(item, "value", item_path)});
    }
  }

  void read_ports(const Json& item, const std::string& path, Container& container) {
    for (const Json& port : list(item, "ports", path)) {
      if (!is_object(port, path + ".ports[]")) return;
      for (const char* key : {"containerPort", "hostPort"}) {
        const Json* number = member(port, key);
        if (number && number->is_number_integer()) container.ports.push_back(number->get<int64_t>());
      }
    }
  }

  // Ports that probes and hooks ask: somebody in the pod listens there, declared or not.
  void read_probed_ports(const Json& item, Container& container) {
    const Json* lifecycle = member(item, "lifecycle");
    for (const auto& [owner, keys] :
         {std::pair<const Json*, std::vector<const char*>>{&item, {"startupProbe", "readinessProbe", "livenessProbe"}},
          {lifecycle, {"postStart", "preStop"}}}) {
      if (!owner || !owner->is_object()) continue;
      for (const char* key : keys) {
        const Json* probe = member(*owner, key);
        if (!probe || !probe->is_object()) continue;
        for (const char* kind : {"httpGet", "tcpSocket", "grpc"}) read_probed_port(*probe, kind, container);
      }
    }
  }

  static void read_probed_port(const Json& probe, const char* kind, Container& container) {
    const Json* action = member(probe, kind);
    const Json* port = action && action->is_object() && !action->contains("host") ? member(*action, "port") : nullptr;
    if (port && port->is_number_integer()) container.ports.push_back(port->get<int64_t>());
  }

  void read_env(const Json& item, const std::string& path, Container& container) {
    for (const Json& variable : list(item, "env", path, &container.env_presence)) {
      if (!is_object(variable, path + ".env[]")) return;
      Variable read{text(variable, "name", path + ".env[]"), std::nullopt};
      if (!member(variable, "valueFrom")) read.value = text(variable, "value", path + ".env[]");
      container.env.push_back(std::move(read));
    }
  }

  void read_mounts(const Json& item, const std::string& path, Container& container) {
    const std::string mount_path = path + ".volumeMounts[]";
    for (const Json& mount : list(item, "volumeMounts", path, &container.mounts_presence)) {
      if (!is_object(mount, mount_path)) return;
      container.mounts.push_back({text(mount, "mountPath", mount_path), text(mount, "name", mount_path)});
    }
  }

  void read_containers(const Json& spec, const char* key) {
    const Json& items = list(spec, key, "spec");
    for (size_t i = 0; i < items.size(); ++i) {
      const std::string path = std::string("spec.") + key + '[' + std::to_string(i) + ']';
      if (!is_object(items[i], path)) return;
      Container container;
      container.name = text(items[i], "name", path);
      container.item = i;
      read_mounts(items[i], path, container);
      container.is_init = key == std::string_view("initContainers");
      container.is_ephemeral = key == std::string_view("ephemeralContainers");
      container.is_native_sidecar = container.is_init && text(items[i], "restartPolicy", path) == "Always";
      read_ports(items[i], path, container);
      read_probed_ports(items[i], container);
      read_env(items[i], path, container);
      pod_.containers.push_back(std::move(container));
    }
  }

  Pod pod_;
  std::string error_;
};

const std::string* find(const std::map<std::string, std::string>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

}  // namespace

const std::string* Container::value(const std::string& variable) const {
  // Of several with one name the last one counts.
  for (auto it = env.rbegin(); it != env.rend(); ++it)
    if (it->name == variable) return it->value ? &*it->value : nullptr;
  return nullptr;
}

const std::string* Pod::label(const std::string& key) const { return find(labels, key); }
const std::string* Pod::annotation(const std::string& key) const { return find(annotations, key); }

Result<Pod> read_pod(const nlohmann::json& object) { return Reader().read(object); }

}  // namespace nezha::k8s
