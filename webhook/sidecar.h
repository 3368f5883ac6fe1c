// Sidecar: whether a pod can hold a nezha-cache of its own, what that one reads, and the parts that make it.
// Pure. Threads: any.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nezha/base/named.h"
#include "nezha/k8s/pod.h"
#include "webhook/decide.h"
#include "webhook/policy.h"

namespace nezha::webhook {

inline constexpr const char* kSidecarName = "nezha-cache";       // the container, and the volume with its data
inline constexpr const char* kNoTokenVolume = "nezha-no-token";  // empty, lies over the API token
inline constexpr const char* kSidecarConfigVariable = "NEZHA_CONFIG";
inline constexpr const char* kPortSysctl = "net.ipv4.ip_unprivileged_port_start";

// The hosts that a sidecar of ours, added before, serves; nothing when the pod has none.
std::optional<std::set<HostName>> hosts_of_sidecar(const k8s::Pod& pod);

// Why the pod cannot get a sidecar, for a reader; empty when it can.
std::string why_no_sidecar(const k8s::Pod& pod, const Policy& policy);

// What the sidecar reads: these upstreams, reached directly. It has no keys and no certificates, so it passes on what
// needs them. JSON, which is YAML too. Nothing when it is too long for an environment variable.
std::optional<std::string> sidecar_configuration(const config::SidecarSettings& settings,
                                                 const std::vector<const config::Upstream*>& upstreams);

// As items of spec.initContainers and spec.volumes, JSON.
std::string sidecar_container(const Sidecar& sidecar);
std::string no_token_volume();
std::optional<std::string> sidecar_volume(const config::SidecarSettings& settings);  // nothing with memory

// Where in spec.initContainers: behind the proxies of meshes, before everything else that may read data.
size_t sidecar_position(const k8s::Pod& pod);

// "nezha-cache from IMAGE, emptyDir of 10240 MiB"
std::string describe(const config::SidecarSettings& settings);

}  // namespace nezha::webhook
