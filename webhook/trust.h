// Trust: what makes a pod's clients accept the cache's certificates beside the public ones: a volume with a bundle of
// roots, environment variables that name it, and the bundle in the places where images have theirs.
// Everything is added, container by container; what the user set stays and is reported.
// Pure. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "nezha/k8s/pod.h"

namespace nezha::webhook {

inline constexpr const char* kTrustConfigMap = "nezha-trust";       // of each namespace that trusts the cache
inline constexpr const char* kTrustVolume = "nezha-trust";          // in the pod
inline constexpr const char* kTrustDirectory = "/etc/nezha-trust";  // in its containers
inline constexpr const char* kTrustBundleKey = "ca-bundle.crt";
inline constexpr const char* kTrustStoreKey = "truststore.p12";
inline constexpr const char* kTrustStorePassword = "changeit";            // guards nothing; Java's own default
inline constexpr const char* kSidecarCertificates = "nezha-sidecar-tls";  // Secret and volume
inline constexpr const char* kCertificatesDirectory = "/etc/nezha-tls";

// What is missing in one container.
struct TrustAddition {
  size_t container = 0;  // in Pod::containers
  struct Mount {
    std::string path;
    std::string sub_path;  // empty: the whole volume
  };
  std::vector<Mount> mounts;
  struct Variable {
    std::string name;
    std::string value;
  };
  std::vector<Variable> variables;
  // JAVA_TOOL_OPTIONS is there with other options: its place in env, and its value with ours behind.
  struct Extended {
    size_t item = 0;
    std::string value;
  };
  std::vector<Extended> extended;
};

struct TrustPlan {
  std::vector<TrustAddition> additions;  // containers with nothing to add are left out
  std::vector<std::string> reasons;      // what the user's own settings keep from being trusted
};
TrustPlan plan_trust(const k8s::Pod& pod);

// Why the pod cannot get it, for a reader; empty when it can.
std::string why_no_trust(const k8s::Pod& pod);

// As items of spec.volumes, JSON.
std::string trust_volume();
std::string sidecar_certificates_volume();

}  // namespace nezha::webhook
