#include "webhook/sidecar.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nezha/base/text.h"
#include "nezha/config/parse.h"
#include "webhook/sentence.h"
#include "webhook/trust.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::ordered_json;
using Volume = config::SidecarSettings::Volume;

constexpr int kHttpPort = 80;
constexpr int kHttpsPort = 443;
constexpr int kAdminPort = 9180;
constexpr int kUserId = 65532;                         // the image's own; no mesh's proxy has it
constexpr size_t kConfigurationBytesMax = 100 * 1024;  // Linux takes 128 KiB as one string of the environment
constexpr const char* kDirectory = "/cache";
constexpr const char* kTokenPath = "/var/run/secrets/kubernetes.io/serviceaccount";

// Configuration may bring bytes that are no UTF-8.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

const k8s::Container* our_container(const k8s::Pod& pod) {
  for (const auto& container : pod.containers)
    if (is_our_sidecar(container)) return &container;
  return nullptr;
}

std::string why_not_by_name(const k8s::Pod& pod) {
  for (const auto& container : pod.containers)
    if (container.name == kSidecarName) return std::string("the pod has a container ") + kSidecarName + " of its own";
  for (const char* name : {kSidecarName, kNoTokenVolume})
    if (pod.volumes.contains(name)) return std::string("the pod has a volume ") + name + " of its own";
  return {};
}

std::string why_not_by_ports(const k8s::Pod& pod) {
  for (const auto& container : pod.containers)
    for (const int64_t port : container.ports)
      if (port == kHttpPort || port == kHttpsPort || port == kAdminPort)
        return "container " + webhook::quoted(container.name) + " uses port " + std::to_string(port);
  for (const auto& sysctl : pod.sysctls) {
    if (sysctl.name != kPortSysctl) continue;
    const auto first = parse_decimal(sysctl.value);
    if (!first || *first > kHttpPort)
      return std::string("the pod sets the sysctl ") + kPortSysctl + " to " + webhook::quoted(sysctl.value) +
             ", so port 80 needs a privilege";
  }
  return {};
}

std::string duration_of(std::chrono::seconds duration) { return std::to_string(duration.count()) + 's'; }

Json freshness_of(const config::Freshness& freshness) {
  using Mode = config::Freshness::Mode;
  switch (freshness.mode) {
    case Mode::kHttp:
      return {{"mode", "http"}};
    case Mode::kRevalidate:
      return {{"mode", "revalidate"}};
    case Mode::kTtl:
      return {{"mode", "ttl"}, {"ttl", duration_of(freshness.ttl_s)}};
    case Mode::kImmutable:
      return {{"mode", "immutable"}};
  }
  return {{"mode", "revalidate"}};
}

std::string url_of(const config::Endpoint& endpoint) {
  const bool is_ipv6 = endpoint.host.find(':') != std::string::npos;
  return (endpoint.tls ? "https://" : "http://") + (is_ipv6 ? '[' + endpoint.host + ']' : endpoint.host) + ':' +
         std::to_string(endpoint.port);
}

Json upstream_of(const config::Upstream& upstream) {
  Json hosts = Json::array();
  for (const auto& host : upstream.hosts) hosts.push_back(host.get());
  Json json{{"name", upstream.name.get()},
            {"hosts", std::move(hosts)},
            {"protocol", upstream.protocol == config::Protocol::kS3 ? "s3" : "http"},
            {"freshness", freshness_of(upstream.freshness)}};
  if (!upstream.endpoint) return json;
  json["endpoint"] = Json::array({url_of(*upstream.endpoint)});
  if (upstream.more_endpoints)
    for (const auto& more : *upstream.more_endpoints) json["endpoint"].push_back(url_of(more));
  return json;
}

// Below the volume's size: what the file system needs beside the data must not have the pod evicted.
uint64_t tier_bytes(const config::SidecarSettings& settings) {
  return settings.volume == Volume::kMemory ? settings.size_bytes : settings.size_bytes / 10 * 9;
}

uint64_t container_memory_bytes(const config::SidecarSettings& settings) {
  return settings.memory_bytes + (settings.volume == Volume::kMemory ? settings.size_bytes : 0);
}

std::string cpu_text(uint32_t millicores) {
  return millicores % 1000 == 0 ? std::to_string(millicores / 1000) : std::to_string(millicores) + 'm';
}

// What the Pod Security Standard "restricted" asks of a container, and a file system that nobody can write to.
Json security_context() {
  return {{"runAsNonRoot", true},
          {"runAsUser", kUserId},
          {"runAsGroup", kUserId},
          {"allowPrivilegeEscalation", false},
          {"readOnlyRootFilesystem", true},
          {"capabilities", {{"drop", Json::array({"ALL"})}}},
          {"seccompProfile", {{"type", "RuntimeDefault"}}}};
}

// A command and no request from outside: it works under every mesh, network policy and IP family.
Json startup_probe() {
  const std::string probe = "--probe=" + std::to_string(kAdminPort);
  return {{"exec", {{"command", Json::array({"nezha-cache", probe})}}},
          {"periodSeconds", 1},
          {"timeoutSeconds", 5},
          {"failureThreshold", 120}};
}

}  // namespace

bool is_our_sidecar(const k8s::Container& container) {
  return container.name == kSidecarName && container.is_native_sidecar && container.value(kSidecarConfigVariable);
}

bool is_mesh_proxy(const k8s::Container& container) {
  const std::set<std::string> kMesh{"istio-init",   "istio-validation",          "istio-proxy",
                                    "linkerd-init", "linkerd-network-validator", "linkerd-proxy"};
  return kMesh.contains(container.name);
}

std::optional<SidecarHosts> hosts_of_sidecar(const k8s::Pod& pod) {
  const auto* container = our_container(pod);
  if (!container) return std::nullopt;
  SidecarHosts hosts;
  const auto settings = config::parse_settings(*container->value(kSidecarConfigVariable), kSidecarConfigVariable);
  if (!settings) return hosts;
  for (const auto& upstream : settings.value().upstreams) {
    hosts.served.insert(upstream.hosts.begin(), upstream.hosts.end());
    if (upstream.tls == config::TlsMode::kIntercept)
      hosts.intercepted.insert(upstream.hosts.begin(), upstream.hosts.end());
  }
  return hosts;
}

std::string why_no_sidecar(const k8s::Pod& pod, const Policy& policy) {
  const auto& settings = policy.settings->webhook.sidecar;
  if (!settings) return "the configuration has no webhook.sidecar.image";
  if (pod.host_network) return "the pod uses the network of its node";
  if (pod.is_windows) return "the pod runs on Windows";
  if (pod.has_pod_resources) return "the pod bounds its containers together in spec.resources";
  if (settings->volume == Volume::kEphemeral && !pod.has_fs_group)
    return "an ephemeral volume is writable only with spec.securityContext.fsGroup, which the pod does not set";
  if (auto why = why_not_by_name(pod); !why.empty()) return why;
  return why_not_by_ports(pod);
}

std::optional<std::string> sidecar_configuration(const config::SidecarSettings& settings,
                                                 const std::vector<const config::Upstream*>& upstreams,
                                                 const std::set<UpstreamName>& intercepted) {
  Json list = Json::array();
  for (const auto* upstream : upstreams) {
    list.push_back(upstream_of(*upstream));
    if (intercepted.contains(upstream->name)) list.back()["tls"] = "intercept";
  }
  const bool in_memory = settings.volume == Volume::kMemory;
  const bool in_pmem = settings.medium == config::Medium::kPmem;
  Json tier{{"medium", in_memory ? "memory" : in_pmem ? "pmem" : "nvme"}};
  if (!in_memory) tier["path"] = std::string(kDirectory) + "/nezha";
  tier["size"] = tier_bytes(settings);
  const auto loopback = [](int port) { return "127.0.0.1:" + std::to_string(port); };
  Json json{{"listen",
             {{"http", Json::array({loopback(kHttpPort)})},
              {"https", Json::array({loopback(kHttpsPort)})},
              {"admin", loopback(kAdminPort)}}},
            {"cache", {{"memory", settings.memory_bytes / 2}, {"tiers", Json::array({tier})}}},
            {"upstreams", list}};
  if (!intercepted.empty()) json["tls"] = {{"directory", kCertificatesDirectory}};
  std::string text = text_of(json);
  if (text.size() > kConfigurationBytesMax) return std::nullopt;
  return text;
}

std::string sidecar_container(const Sidecar& sidecar) {
  const auto& settings = sidecar.settings;
  // Limits equal to requests keep a Guaranteed pod Guaranteed. No limit of ephemeral storage: it would be the pod's.
  const Json limits{{"cpu", cpu_text(settings.cpu_millicores)},
                    {"memory", std::to_string(container_memory_bytes(settings))}};
  Json requests = limits;
  if (settings.volume == Volume::kEmptyDir) requests["ephemeral-storage"] = std::to_string(settings.size_bytes);
  Json mounts = Json::array({Json{{"name", kNoTokenVolume}, {"mountPath", kTokenPath}, {"readOnly", true}}});
  if (settings.volume != Volume::kMemory)
    mounts.insert(mounts.begin(), Json{{"name", kSidecarName}, {"mountPath", kDirectory}});
  Json variables = Json::array({Json{{"name", kSidecarConfigVariable}, {"value", sidecar.configuration}}});
  if (sidecar.intercepts) {
    mounts.push_back({{"name", kSidecarCertificates}, {"mountPath", kCertificatesDirectory}, {"readOnly", true}});
    // The sources of intercepted hosts are verified with the same roots as the pod's own clients would.
    mounts.push_back({{"name", kTrustVolume}, {"mountPath", kTrustDirectory}, {"readOnly", true}});
    variables.push_back({{"name", "SSL_CERT_FILE"}, {"value", std::string(kTrustDirectory) + '/' + kTrustBundleKey}});
  }
  const uint32_t threads = (settings.cpu_millicores + 999) / 1000;
  const Json json{{"name", kSidecarName},
                  {"image", settings.image},
                  {"args", Json::array({std::string("--config-env=") + kSidecarConfigVariable,
                                        "--threads=" + std::to_string(std::min<uint32_t>(threads, 256)),
                                        "--drain-seconds=0", "--supervise"})},
                  {"env", std::move(variables)},
                  {"restartPolicy", "Always"},
                  {"startupProbe", startup_probe()},
                  {"resources", {{"requests", requests}, {"limits", limits}}},
                  {"securityContext", security_context()},
                  {"volumeMounts", std::move(mounts)}};
  return text_of(json);
}

// Of memory, and so no local storage that would keep the cluster autoscaler from moving the pod.
std::string no_token_volume() {
  return text_of({{"name", kNoTokenVolume}, {"emptyDir", {{"medium", "Memory"}, {"sizeLimit", "1Mi"}}}});
}

std::optional<std::string> sidecar_volume(const config::SidecarSettings& settings) {
  const std::string size = std::to_string(settings.size_bytes);
  if (settings.volume == Volume::kMemory) return std::nullopt;
  if (settings.volume == Volume::kEmptyDir)
    return text_of({{"name", kSidecarName}, {"emptyDir", {{"sizeLimit", size}}}});
  Json spec{{"accessModes", Json::array({"ReadWriteOnce"})}, {"resources", {{"requests", {{"storage", size}}}}}};
  if (!settings.storage_class.empty()) spec["storageClassName"] = settings.storage_class;
  if (!settings.snapshot.empty())
    spec["dataSource"] = {
        {"apiGroup", "snapshot.storage.k8s.io"}, {"kind", "VolumeSnapshot"}, {"name", settings.snapshot}};
  return text_of({{"name", kSidecarName}, {"ephemeral", {{"volumeClaimTemplate", {{"spec", std::move(spec)}}}}}});
}

size_t sidecar_position(const k8s::Pod& pod) {
  size_t position = 0;
  for (size_t i = 0; i < pod.containers.size() && pod.containers[i].is_init; ++i)
    if (is_mesh_proxy(pod.containers[i])) position = i + 1;
  return position;
}

std::string describe(const config::SidecarSettings& settings) {
  const char* place = settings.volume == Volume::kMemory     ? "memory"
                      : settings.volume == Volume::kEmptyDir ? "an emptyDir"
                                                             : "an ephemeral volume";
  const std::string begun = settings.snapshot.empty() ? "" : ", begun with snapshot " + settings.snapshot;
  return std::string(kSidecarName) + " from " + settings.image + ", " + place + " of " +
         std::to_string(settings.size_bytes >> 20) + " MiB" + begun;
}

}  // namespace nezha::webhook
