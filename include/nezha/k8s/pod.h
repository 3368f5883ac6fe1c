// Pod: what Nezha needs to know of a pod, read from the raw object. A value; it never turns back into a pod, so
// fields that this version does not know cannot get lost.
// Threads: any.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nezha/base/result.h"

namespace nezha::k8s {

// JSON tells an absent member from a null one; a patch must create a list or object in both cases.
enum class Presence { kAbsent, kNull, kPresent };

struct HostAlias {
  std::string ip;  // as the pod spells it
  Presence hostnames_presence = Presence::kAbsent;
  std::vector<std::string> hostnames;
};

struct Mount {
  std::string path;
  std::string volume;
};

struct Variable {
  std::string name;
  std::optional<std::string> value;  // nothing: it comes from elsewhere (valueFrom)
};

struct Container {
  std::string name;
  size_t item = 0;  // its place in its list of the pod
  Presence mounts_presence = Presence::kAbsent;
  std::vector<Mount> mounts = {};
  bool is_init = false;
  bool is_ephemeral = false;
  bool is_native_sidecar = false;   // an init container with restartPolicy: Always
  std::vector<int64_t> ports = {};  // containerPort and hostPort of each; ports that probes and hooks ask
  Presence env_presence = Presence::kAbsent;
  std::vector<Variable> env = {};  // in the pod's order

  const std::string* value(const std::string& variable) const;  // null when absent or from elsewhere; borrowed
};

struct Sysctl {
  std::string name;
  std::string value;
};

struct Pod {
  std::string name;           // empty when the pod has only generateName
  std::string generate_name;  // for messages, never for names of parts
  Presence metadata_presence = Presence::kAbsent;
  Presence annotations_presence = Presence::kAbsent;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;

  bool host_network = false;
  Presence host_aliases_presence = Presence::kAbsent;
  std::vector<HostAlias> host_aliases;  // in the pod's order
  std::vector<Container> containers;    // init containers first, then containers, then ephemeral ones
  Presence init_containers_presence = Presence::kAbsent;

  Presence volumes_presence = Presence::kAbsent;
  std::set<std::string> volumes;                          // names
  std::map<std::string, std::string> config_map_volumes;  // of those that are ConfigMaps: name -> ConfigMap
  Presence security_context_presence = Presence::kAbsent;
  Presence sysctls_presence = Presence::kAbsent;
  std::vector<Sysctl> sysctls;
  bool has_fs_group = false;
  bool has_pod_resources = false;  // spec.resources, which bounds the sum of the containers'
  bool is_windows = false;

  const std::string* label(const std::string& key) const;       // null when absent; borrowed
  const std::string* annotation(const std::string& key) const;  // null when absent; borrowed
};

// Fails with kFixInput and the path of the offending value ("spec.hostAliases[0].ip is not a string") when the object
// is no pod that the API server could decode.
[[nodiscard]] Result<Pod> read_pod(const nlohmann::json& object);

}  // namespace nezha::k8s
