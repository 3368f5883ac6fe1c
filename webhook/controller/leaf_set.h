// LeafSet: the certificates of intercepted hosts, one for each, with one key: the Secret that a cache mounts. Pure.
// Threads: values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "nezha/base/clock.h"
#include "nezha/base/result.h"
#include "nezha/pki/certificates.h"
#include "webhook/controller/authority.h"
#include "webhook/controller/secret_data.h"

namespace nezha::webhook {

struct LeafSet {
  std::string key_pem;
  std::map<std::string, std::string> leaves;  // by host
  friend bool operator==(const LeafSet&, const LeafSet&) = default;
};

// Keys of the Secret: tls.key and HOST.crt.
LeafSet read_leaf_set(const SecretData& data);
SecretData write_leaf_set(const LeafSet& set);

// The set as it should be: leaves that hold under `ca` and end late enough are kept, others made, further ones dropped.
[[nodiscard]] Result<LeafSet> settle_leaves(LeafSet before, const pki::Identity& ca,
                                            const std::vector<std::string>& hosts, WallTime now,
                                            const TrustTimes& times);

}  // namespace nezha::webhook
