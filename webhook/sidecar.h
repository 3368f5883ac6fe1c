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

// What a sidecar of ours, added before, serves; nothing when the pod has none.
struct SidecarHosts {
  std::set<HostName> served;
  std::set<HostName> intercepted;  // of them
};
std::optional<SidecarHosts> hosts_of_sidecar(const k8s::Pod& pod);

// A sidecar of ours; a mesh's own container, which is left alone.
bool is_our_sidecar(const k8s::Container& container);
bool is_mesh_proxy(const k8s::Container& container);

// Why the pod cannot get a sidecar, for a reader; empty when it can.
std::string why_no_sidecar(const k8s::Pod& pod, const Policy& policy);

// What the sidecar reads: these upstreams, reached directly; of them it intercepts the `intercepted`, and relays TLS of
// the others. It has no keys of S3. JSON, which is YAML too. Nothing when it is too long for an environment variable.
std::optional<std::string> sidecar_configuration(const config::SidecarSettings& settings,
                                                 const std::vector<const config::Upstream*>& upstreams,
                                                 const std::set<UpstreamName>& intercepted);

// As items of spec.initContainers and spec.volumes, JSON.
std::string sidecar_container(const Sidecar& sidecar);
std::string no_token_volume();
std::optional<std::string> sidecar_volume(const config::SidecarSettings& settings);  // nothing with memory

// Where in spec.initContainers: behind the proxies of meshes, before everything else that may read data.
size_t sidecar_position(const k8s::Pod& pod);

// "nezha-cache from IMAGE, emptyDir of 10240 MiB"
std::string describe(const config::SidecarSettings& settings);

}  // namespace nezha::webhook
