#include "webhook/controller/leaf_set.h"

#include <utility>

namespace nezha::webhook {
namespace {

constexpr const char* kKeyName = "tls.key";
constexpr std::string_view kCertificate = ".crt";

bool good(const std::string& leaf_pem, const std::string& key_pem, const pki::Identity& ca, const std::string& host,
          WallTime now, const TrustTimes& times) {
  const auto info = pki::inspect(leaf_pem);
  return info && info.value().dns_names == std::vector<std::string>{host} &&
         now < info.value().validity.not_after - times.renew && pki::check_pair({leaf_pem, key_pem}) &&
         pki::check_chain(leaf_pem, ca.certificate_pem, host, now);
}

}  // namespace

LeafSet read_leaf_set(const SecretData& data) {
  LeafSet out;
  for (const auto& [key, text] : data) {
    if (key == kKeyName)
      out.key_pem = text;
    else if (key.ends_with(kCertificate))
      out.leaves[key.substr(0, key.size() - kCertificate.size())] = text;
  }
  return out;
}

SecretData write_leaf_set(const LeafSet& set) {
  SecretData out{{kKeyName, set.key_pem}};
  for (const auto& [host, pem] : set.leaves) out[host + std::string(kCertificate)] = pem;
  return out;
}

Result<LeafSet> settle_leaves(LeafSet before, const pki::Identity& ca, const std::vector<std::string>& hosts,
                              WallTime now, const TrustTimes& times) {
  LeafSet out;
  for (const std::string& host : hosts) {
    const auto found = before.leaves.find(host);
    if (found != before.leaves.end() && good(found->second, before.key_pem, ca, host, now, times))
      out.leaves[host] = std::move(found->second);
  }
  // The key is as old as its oldest leaf: with the last of them it is replaced too.
  if (out.leaves.empty()) {
    NEZHA_TRY(out.key_pem, pki::make_key());
  } else {
    out.key_pem = std::move(before.key_pem);
  }
  for (const std::string& host : hosts) {
    if (out.leaves.contains(host)) continue;
    NEZHA_TRY(out.leaves[host],
              pki::make_leaf_of_key(ca, out.key_pem, {host}, {now - times.backdate, now + times.leaf}));
  }
  return out;
}

}  // namespace nezha::webhook
