#include "webhook/controller/authority.h"

#include <utility>

namespace nezha::webhook {
namespace {

constexpr const char* kCommonName = "Nezha interception CA";
constexpr std::string_view kCertificate = ".crt";
constexpr const char* kKey = ".key";
constexpr const char* kNext = "next-";  // no authority's name begins so

// The first certificate's identity, when key and certificate fit.
std::optional<pki::Identity> identity_at(const SecretData& data, const std::string& name) {
  const auto certificate = data.find(name + std::string(kCertificate)), key = data.find(name + kKey);
  if (certificate == data.end() || key == data.end()) return std::nullopt;
  const auto certificates = pki::split_bundle(certificate->second);
  if (certificates.empty()) return std::nullopt;
  pki::Identity identity{certificates.front(), key->second};
  if (!pki::check_pair(identity)) return std::nullopt;
  return identity;
}

Result<pki::Validity> validity_of(const std::string& certificate_pem) {
  NEZHA_TRY(const auto info, pki::inspect(certificate_pem));
  return info.validity;
}

Result<pki::Identity> new_ca(const std::vector<std::string>& hosts, WallTime now, const TrustTimes& times) {
  return pki::make_limited_ca(kCommonName, hosts, {now - times.backdate, now + times.ca});
}

Result<> limit_to(pki::Identity& ca, const std::vector<std::string>& hosts) {
  NEZHA_TRY(const auto info, pki::inspect(ca.certificate_pem));
  if (info.permitted_names == hosts) return ok();
  NEZHA_TRY(ca.certificate_pem, pki::reissue_limited_ca(ca, hosts));
  return ok();
}

bool ended(const std::string& certificate_pem, WallTime now) {
  const auto validity = validity_of(certificate_pem);
  return !validity || now >= validity.value().not_after;
}

}  // namespace

std::string authority_of(const Namespace& name_space) { return "namespace." + name_space.get(); }

Authorities read_authorities(const SecretData& data) {
  Authorities out;
  for (const auto& [key, text] : data) {
    if (!key.ends_with(kCertificate)) continue;
    const std::string name = key.substr(0, key.size() - kCertificate.size());
    if (name.starts_with(kNext)) continue;
    auto ca = identity_at(data, name);
    if (!ca) continue;
    auto retired = pki::split_bundle(text);
    retired.erase(retired.begin());
    out[name] = Authority{std::move(*ca), identity_at(data, kNext + name), std::move(retired)};
  }
  return out;
}

SecretData write_authorities(const Authorities& authorities) {
  SecretData out;
  const auto put = [&](const std::string& name, const pki::Identity& identity) {
    out[name + std::string(kCertificate)] = identity.certificate_pem;
    out[name + kKey] = identity.key_pem;
  };
  for (const auto& [name, authority] : authorities) {
    put(name, authority.ca);
    for (const auto& pem : authority.retired_pem) out[name + std::string(kCertificate)] += pem;
    if (authority.next_ca) put(kNext + name, *authority.next_ca);
  }
  return out;
}

Result<Authority> settle_authority(std::optional<Authority> before, const std::vector<std::string>& hosts, WallTime now,
                                   const TrustTimes& times) {
  Authority out;
  if (before && !ended(before->ca.certificate_pem, now)) {
    out = std::move(*before);
  } else {
    NEZHA_TRY(out.ca, new_ca(hosts, now, times));
  }
  std::erase_if(out.retired_pem, [&](const std::string& pem) { return ended(pem, now); });
  NEZHA_TRY(limit_to(out.ca, hosts));
  NEZHA_TRY(const auto validity, validity_of(out.ca.certificate_pem));
  // The overlap must be over, and the last leaf too, before the CA ends.
  if (!out.next_ca && now >= validity.not_after - times.overlap - 2 * times.leaf) {
    NEZHA_TRY(auto next, new_ca(hosts, now, times));
    out.next_ca = std::move(next);
  }
  if (!out.next_ca) return out;
  NEZHA_TRY(limit_to(*out.next_ca, hosts));
  NEZHA_TRY(const auto next_validity, validity_of(out.next_ca->certificate_pem));
  if (now >= next_validity.not_before + times.backdate + times.overlap) {
    out.retired_pem.push_back(out.ca.certificate_pem);
    out.ca = *std::exchange(out.next_ca, std::nullopt);
  }
  return out;
}

std::vector<std::string> trusted_cas(const Authority& authority) {
  std::vector<std::string> out = authority.retired_pem;
  out.push_back(authority.ca.certificate_pem);
  if (authority.next_ca) out.push_back(authority.next_ca->certificate_pem);
  return out;
}

}  // namespace nezha::webhook
