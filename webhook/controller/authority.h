// Authority: a CA for intercepted hosts, as all replicas share it, and what happens to it over time. Pure.
//
// Its name constraints follow the configuration: the certificate is reissued with the same key and subject, so leaves
// hold under each issue that names their host. Rotation, long before the CA ends:
//   1 the next CA is made and goes into the bundles    ca + next_ca
//   2 after `overlap`, when pods that lack it are gone, leaves are signed by it; the old one is retired
//   3 a retired CA stays in the bundles until it ends
// There is one for the central cache, and one per namespace for the sidecars there: a namespace's key signs nothing
// that another namespace trusts. Threads: values.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nezha/base/clock.h"
#include "nezha/base/named.h"
#include "nezha/base/result.h"
#include "nezha/pki/certificates.h"
#include "webhook/controller/secret_data.h"

namespace nezha::webhook {

struct TrustTimes {
  std::chrono::seconds ca = std::chrono::hours(24 * 3650);
  std::chrono::seconds leaf = std::chrono::hours(24 * 90);
  std::chrono::seconds renew = std::chrono::hours(24 * 30);    // before a leaf's end
  std::chrono::seconds overlap = std::chrono::hours(24 * 90);  // longer than the longest job
  std::chrono::seconds backdate = std::chrono::minutes(5);     // clocks of the cluster's machines differ
};

struct Authority {
  pki::Identity ca;
  std::optional<pki::Identity> next_ca;
  std::vector<std::string> retired_pem;  // their keys are forgotten
  friend bool operator==(const Authority&, const Authority&) = default;
};

using Authorities = std::map<std::string, Authority>;  // by name

inline constexpr const char* kCacheAuthority = "cache";
std::string authority_of(const Namespace& name_space);  // "namespace.NAME"

// Keys of the Secret: NAME.crt (the CA, then retired ones), NAME.key, next-NAME.crt, next-NAME.key.
// What does not parse or fit together is left out, and so is made anew.
Authorities read_authorities(const SecretData& data);
SecretData write_authorities(const Authorities& authorities);

// The authority as it should be now for these hosts (sorted, at least one); equal to `before` when nothing is due.
[[nodiscard]] Result<Authority> settle_authority(std::optional<Authority> before, const std::vector<std::string>& hosts,
                                                 WallTime now, const TrustTimes& times);

// What must be trusted for it, oldest first.
std::vector<std::string> trusted_cas(const Authority& authority);

}  // namespace nezha::webhook
