// The ConfigMap nezha-trust that pods of a namespace mount: what is in it, and what of it was read back. Pure.
//   data        ca-bundle.crt   public roots, the admin's further roots, our CAs
//               hosts           whose certificates of the central cache hold under them, one a line
//               sidecar-hosts   the same of sidecars in that namespace
//   binaryData  truststore.p12  the same roots for Java
// Threads: values.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "nezha/base/named.h"
#include "nezha/base/result.h"
#include "nezha/k8s/watch.h"
#include "webhook/policy.h"

namespace nezha::webhook {

struct TrustBundle {
  std::vector<std::string> certificates_pem;
  std::vector<std::string> hosts;          // sorted
  std::vector<std::string> sidecar_hosts;  // sorted
};

// The members data and binaryData.
[[nodiscard]] Result<nlohmann::json> trust_content(const TrustBundle& bundle);
// Equal for equal data and binaryData of a ConfigMap.
std::string trust_digest(const nlohmann::json& config_map);

// What is kept of a ConfigMap in memory: it is hundreds of kilobytes, and one per namespace.
std::string reduced_trust(const std::string& config_map_json);

struct TrustRecord {
  std::string digest;
  std::string owner_uid;   // empty: none
  std::string owner_name;  // another release in the cluster has an owner of another name
  std::string resource_version;
  TrustedHosts trusted;
  friend bool operator==(const TrustRecord&, const TrustRecord&) = default;
};
// REQUIRES: `object` was reduced.
TrustRecord read_trust(const k8s::Object& object);

// Of its first owner; empty: none.
std::string owner_uid_of(const nlohmann::json& object);
std::string owner_name_of(const nlohmann::json& object);

}  // namespace nezha::webhook
