#include "webhook/trust.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "webhook/sentence.h"
#include "webhook/sidecar.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::ordered_json;

// Where images have their roots: Debian and Alpine; Red Hat; OpenSSL's own default on both. For clients that no
// variable tells where to look.
constexpr std::array<const char*, 3> kSystemBundles{"/etc/ssl/certs/ca-certificates.crt",
                                                    "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"};

// Each names a file of roots. Who reads them stands in docs/semantics.md.
constexpr std::array<const char*, 9> kBundleVariables{"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",  "CURL_CA_BUNDLE",
                                                      "AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO",
                                                      "PIP_CERT",      "CARGO_HTTP_CAINFO",   "S3_CA_FILE"};

constexpr const char* kJavaVariable = "JAVA_TOOL_OPTIONS";
constexpr std::array<const char*, 3> kJavaVariables{kJavaVariable, "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"};
constexpr const char* kJavaTrustStore = "-Djavax.net.ssl.trustStore";

std::string bundle_path() { return std::string(kTrustDirectory) + '/' + kTrustBundleKey; }

std::string java_options() {
  const std::string option = kJavaTrustStore;
  return option + '=' + kTrustDirectory + '/' + kTrustStoreKey + ' ' + option + "Type=PKCS12 " + option +
         "Password=" + kTrustStorePassword;
}

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

bool is_below(const std::string& path, const std::string& folder) {
  return folder == "/" || (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

// One container: what is missing, and what of the user's is in the way.
class ContainerPlan {
 public:
  explicit ContainerPlan(const k8s::Container& container) : container_(container) {}

  void plan() {
    add_mount(kTrustDirectory, "");
    for (const char* path : kSystemBundles) add_mount(path, kTrustBundleKey);
    for (const char* variable : kBundleVariables) add_variable(variable);
    add_java();
  }

  TrustAddition addition;
  std::vector<std::string> in_the_way;  // "SSL_CERT_FILE", "a mount at /etc/ssl"

 private:
  void add_mount(const std::string& path, const char* sub_path) {
    for (const auto& mount : container_.mounts) {
      const std::string own = without_slash(mount.path);
      if (own != path && !is_below(own, path) && !is_below(path, own)) continue;
      if (own != path || mount.volume != kTrustVolume) note("a mount at " + own);
      return;
    }
    addition.mounts.push_back({path, sub_path});
  }

  // The last one of that name: it is the one that counts.
  const k8s::Variable* find(const char* name) const {
    const auto found = std::find_if(container_.env.rbegin(), container_.env.rend(),
                                    [&](const k8s::Variable& variable) { return variable.name == name; });
    return found == container_.env.rend() ? nullptr : &*found;
  }

  // A variable that names one of the image's own bundles is as good as ours: ours lies over it.
  void add_variable(const char* name) {
    const auto* own = find(name);
    if (!own) return addition.variables.push_back({name, bundle_path()});
    if (!own->value) return note(name);
    const bool is_system = std::find(kSystemBundles.begin(), kSystemBundles.end(), *own->value) != kSystemBundles.end();
    if (!is_system && *own->value != bundle_path()) note(name);
  }

  void add_java() {
    for (const char* name : kJavaVariables) {
      const auto* own = find(name);
      if (!own) continue;
      const bool names_store = own->value && own->value->find(kJavaTrustStore) != std::string::npos;
      const bool names_ours = names_store && own->value->find(java_options()) != std::string::npos;
      // From elsewhere it cannot be extended, and what it says cannot be seen.
      if (names_store ? !names_ours : !own->value && name == std::string_view(kJavaVariable)) return note(name);
    }
    const auto* own = find(kJavaVariable);
    if (!own) return addition.variables.push_back({kJavaVariable, java_options()});
    if (own->value->find(java_options()) != std::string::npos) return;
    const std::string before = own->value->empty() ? "" : *own->value + ' ';
    addition.extended.push_back({static_cast<size_t>(own - container_.env.data()), before + java_options()});
  }

  void note(const std::string& what) {
    if (std::find(in_the_way.begin(), in_the_way.end(), what) == in_the_way.end()) in_the_way.push_back(what);
  }

  const k8s::Container& container_;
};

bool is_considered(const k8s::Container& container) {
  return !container.is_ephemeral && !is_our_sidecar(container) && !is_mesh_proxy(container);
}

}  // namespace

TrustPlan plan_trust(const k8s::Pod& pod) {
  TrustPlan out;
  for (size_t i = 0; i < pod.containers.size(); ++i) {
    const auto& container = pod.containers[i];
    if (!is_considered(container)) continue;
    ContainerPlan plan(container);
    plan.plan();
    plan.addition.container = i;
    const auto& addition = plan.addition;
    if (!addition.mounts.empty() || !addition.variables.empty() || !addition.extended.empty())
      out.additions.push_back(addition);
    if (!plan.in_the_way.empty())
      out.reasons.push_back("container " + container.name + " has " + listed(plan.in_the_way) +
                            " of its own, which decides what it trusts");
  }
  return out;
}

std::string why_no_trust(const k8s::Pod& pod) {
  if (pod.is_windows) return "the pod runs on Windows";
  const auto ours = pod.config_map_volumes.find(kTrustVolume);
  const bool is_ours = ours != pod.config_map_volumes.end() && ours->second == kTrustConfigMap;
  if (pod.volumes.contains(kTrustVolume) && !is_ours)
    return std::string("the pod has a volume ") + kTrustVolume + " of its own";
  if (pod.volumes.contains(kSidecarCertificates) && !hosts_of_sidecar(pod))
    return std::string("the pod has a volume ") + kSidecarCertificates + " of its own";
  return {};
}

std::string trust_volume() { return Json{{"name", kTrustVolume}, {"configMap", {{"name", kTrustConfigMap}}}}.dump(); }

// Optional: without it the sidecar relays.
std::string sidecar_certificates_volume() {
  return Json{{"name", kSidecarCertificates}, {"secret", {{"secretName", kSidecarCertificates}, {"optional", true}}}}
      .dump();
}

}  // namespace nezha::webhook
