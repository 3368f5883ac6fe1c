// Making certificates: the CA and the leaves.
#include <openssl/rand.h>

#include <algorithm>
#include <array>

#include "nezha/pki/certificates.h"
#include "src/pki/openssl.h"

namespace nezha::pki {
namespace {

namespace outcome = BOOST_OUTCOME_V2_NAMESPACE;

// A positive random number: 159 bits stay within the 20 bytes that RFC 5280 allows.
constexpr int kSerialBits = 159;

Result<> set_serial(X509* certificate) {
  const std::unique_ptr<BIGNUM, Freer<BN_free>> number(BN_new());
  if (!number || BN_rand(number.get(), kSerialBits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) != 1 ||
      BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) == nullptr) {
    return outcome::failure(library_error("cannot make a serial number"));
  }
  return ok();
}

Result<std::string> random_suffix() {
  std::array<unsigned char, 4> bytes{};
  if (RAND_bytes(bytes.data(), bytes.size()) != 1) return outcome::failure(library_error("no random bytes"));
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) out += {kHex[byte >> 4], kHex[byte & 15]};
  return out;
}

bool set_times(X509* certificate, const Validity& validity) {
  using std::chrono::system_clock;
  return ASN1_TIME_set(X509_getm_notBefore(certificate), system_clock::to_time_t(validity.not_before)) != nullptr &&
         ASN1_TIME_set(X509_getm_notAfter(certificate), system_clock::to_time_t(validity.not_after)) != nullptr;
}

bool set_common_name(X509* certificate, const std::string& name) {
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                    reinterpret_cast<const unsigned char*>(name.data()), static_cast<int>(name.size()),
                                    -1, 0) == 1;
}

bool add_extension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const ExtensionPtr extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

struct Draft {
  CertificatePtr certificate;
  KeyPtr key;
};

// A certificate with a key of its own, without issuer, extensions and signature.
Result<Draft> make_draft(const std::string& common_name, const Validity& validity) {
  Draft draft{CertificatePtr(X509_new()), KeyPtr(EVP_EC_gen("P-256"))};
  if (!draft.certificate || !draft.key) return outcome::failure(library_error("cannot make a key"));
  NEZHA_TRY(set_serial(draft.certificate.get()));
  if (X509_set_version(draft.certificate.get(), X509_VERSION_3) != 1 || !set_times(draft.certificate.get(), validity) ||
      !set_common_name(draft.certificate.get(), common_name) ||
      X509_set_pubkey(draft.certificate.get(), draft.key.get()) != 1) {
    return outcome::failure(library_error("cannot fill in a certificate"));
  }
  return draft;
}

Result<Identity> sign(const Draft& draft, EVP_PKEY* signer) {
  if (X509_sign(draft.certificate.get(), signer, EVP_sha256()) == 0) {
    return outcome::failure(library_error("cannot sign a certificate"));
  }
  NEZHA_TRY(std::string certificate_pem, pem_of(draft.certificate.get()));
  NEZHA_TRY(std::string key_pem, pem_of(draft.key.get()));
  return Identity{std::move(certificate_pem), std::move(key_pem)};
}

std::string alternative_names(const std::vector<std::string>& dns_names) {
  std::string out;
  for (const std::string& name : dns_names) out += (out.empty() ? "DNS:" : ",DNS:") + name;
  return out;
}

}  // namespace

Result<Identity> make_ca(std::string_view common_name, const Validity& validity) {
  NEZHA_TRY(const std::string suffix, random_suffix());
  NEZHA_TRY(const Draft draft, make_draft(std::string(common_name) + " " + suffix, validity));
  X509* const ca = draft.certificate.get();
  if (X509_set_issuer_name(ca, X509_get_subject_name(ca)) != 1 ||
      !add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !add_extension(ca, ca, NID_subject_key_identifier, "hash")) {
    return outcome::failure(library_error("cannot make a CA"));
  }
  return sign(draft, draft.key.get());
}

Result<Identity> make_leaf(const Identity& ca, const std::vector<std::string>& dns_names, const Validity& validity) {
  if (dns_names.empty()) return fail(Remedy::kFixInput, "a leaf certificate needs at least one DNS name");
  NEZHA_TRY(check_pair(ca));
  NEZHA_TRY(const CertificatePtr issuer, parse_certificate(ca.certificate_pem));
  NEZHA_TRY(const KeyPtr signer, parse_key(ca.key_pem));
  if (X509_check_ca(issuer.get()) != 1) return fail(Remedy::kFixInput, "the signing certificate is no CA");
  const Validity cut{validity.not_before, std::min(validity.not_after, wall_of(X509_get0_notAfter(issuer.get())))};
  NEZHA_TRY(const Draft draft, make_draft(dns_names.front(), cut));
  X509* const leaf = draft.certificate.get();
  if (X509_set_issuer_name(leaf, X509_get_subject_name(issuer.get())) != 1 ||
      !add_extension(leaf, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") ||
      !add_extension(leaf, issuer.get(), NID_key_usage, "critical,digitalSignature") ||
      !add_extension(leaf, issuer.get(), NID_ext_key_usage, "serverAuth") ||
      !add_extension(leaf, issuer.get(), NID_subject_key_identifier, "hash") ||
      !add_extension(leaf, issuer.get(), NID_authority_key_identifier, "keyid:always") ||
      !add_extension(leaf, issuer.get(), NID_subject_alt_name, alternative_names(dns_names))) {
    return outcome::failure(library_error("cannot make a leaf certificate"));
  }
  return sign(draft, signer.get());
}

}  // namespace nezha::pki
