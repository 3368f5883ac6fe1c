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

// A common name has at most 64 characters (RFC 5280, ub-common-name); the names that count stand elsewhere.
std::string common_name_of(const std::string& dns_name) { return dns_name.substr(0, 64); }

bool set_common_name(X509* certificate, const std::string& name) {
  return name.empty() || X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                                    reinterpret_cast<const unsigned char*>(name.data()),
                                                    static_cast<int>(name.size()), -1, 0) == 1;
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

Result<KeyPtr> new_key() {
  KeyPtr key(EVP_EC_gen("P-256"));
  if (!key) return outcome::failure(library_error("cannot make a key"));
  return key;
}

// A certificate for this key, without issuer, extensions and signature.
Result<Draft> make_draft(KeyPtr key, const std::string& common_name, const Validity& validity) {
  Draft draft{CertificatePtr(X509_new()), std::move(key)};
  if (!draft.certificate) return outcome::failure(library_error("cannot make a certificate"));
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

// Adds one subtree; false when the library fails.
bool add_subtree(STACK_OF(GENERAL_SUBTREE) * *trees, int type, ASN1_STRING* value) {
  std::unique_ptr<ASN1_STRING, Freer<ASN1_STRING_free>> owned(value);
  std::unique_ptr<GENERAL_SUBTREE, Freer<GENERAL_SUBTREE_free>> tree(GENERAL_SUBTREE_new());
  if (*trees == nullptr) *trees = sk_GENERAL_SUBTREE_new_null();
  if (!owned || !tree || *trees == nullptr) return false;
  GENERAL_NAME_set0_value(tree->base, type, owned.release());
  if (sk_GENERAL_SUBTREE_push(*trees, tree.get()) == 0) return false;
  (void)tree.release();
  return true;
}

ASN1_STRING* string_of(int type, const std::string& bytes) {
  ASN1_STRING* const out = ASN1_STRING_type_new(type);
  if (out != nullptr) ASN1_STRING_set(out, bytes.data(), static_cast<int>(bytes.size()));
  return out;
}

// A kind of name without a permitted subtree is not limited: so mail addresses and URIs are permitted for a domain that
// is nobody's (RFC 2606), and no IP address at all.
bool add_name_constraints(X509* ca, const std::vector<std::string>& dns_names) {
  const std::string nobody = "nezha.invalid";
  const ConstraintsPtr constraints(NAME_CONSTRAINTS_new());
  if (!constraints) return false;
  auto** permitted = &constraints->permittedSubtrees;
  bool good = true;
  for (const auto& name : dns_names) good = good && add_subtree(permitted, GEN_DNS, string_of(V_ASN1_IA5STRING, name));
  for (const int type : {GEN_EMAIL, GEN_URI})
    good = good && add_subtree(permitted, type, string_of(V_ASN1_IA5STRING, nobody));
  for (const size_t address_bytes : {4u, 16u}) {  // every bit of the address is free: 0.0.0.0/0 and ::/0
    const std::string all(2 * address_bytes, '\0');
    good = good && add_subtree(&constraints->excludedSubtrees, GEN_IPADD, string_of(V_ASN1_OCTET_STRING, all));
  }
  return good &&
         X509_add1_ext_i2d(ca, NID_name_constraints, constraints.get(), /*critical=*/1, X509V3_ADD_DEFAULT) == 1;
}

bool add_ca_extensions(X509* ca) {
  return add_extension(ca, ca, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
         add_extension(ca, ca, NID_key_usage, "critical,keyCertSign,cRLSign") &&
         add_extension(ca, ca, NID_subject_key_identifier, "hash");
}

// A self-signed draft, finished.
Result<Identity> finish_ca(const Draft& draft, const std::vector<std::string>& limited_to) {
  X509* const ca = draft.certificate.get();
  if (X509_set_issuer_name(ca, X509_get_subject_name(ca)) != 1 || !add_ca_extensions(ca) ||
      (!limited_to.empty() && !add_name_constraints(ca, limited_to))) {
    return outcome::failure(library_error("cannot make a CA"));
  }
  return sign(draft, draft.key.get());
}

Result<Identity> new_ca(std::string_view common_name, const std::vector<std::string>& limited_to,
                        const Validity& validity) {
  NEZHA_TRY(const std::string suffix, random_suffix());
  NEZHA_TRY(KeyPtr key, new_key());
  NEZHA_TRY(const Draft draft, make_draft(std::move(key), std::string(common_name) + " " + suffix, validity));
  return finish_ca(draft, limited_to);
}

Result<Identity> leaf_of_key(const Identity& ca, KeyPtr key, const std::vector<std::string>& dns_names,
                             const Validity& validity) {
  if (dns_names.empty()) return fail(Remedy::kFixInput, "a leaf certificate needs at least one DNS name");
  NEZHA_TRY(check_pair(ca));
  NEZHA_TRY(const CertificatePtr issuer, parse_certificate(ca.certificate_pem));
  NEZHA_TRY(const KeyPtr signer, parse_key(ca.key_pem));
  if (X509_check_ca(issuer.get()) != 1) return fail(Remedy::kFixInput, "the signing certificate is no CA");
  const Validity cut{validity.not_before, std::min(validity.not_after, wall_of(X509_get0_notAfter(issuer.get())))};
  NEZHA_TRY(const Draft draft, make_draft(std::move(key), common_name_of(dns_names.front()), cut));
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

}  // namespace

Result<Identity> make_ca(std::string_view common_name, const Validity& validity) {
  return new_ca(common_name, {}, validity);
}

Result<Identity> make_limited_ca(std::string_view common_name, const std::vector<std::string>& dns_names,
                                 const Validity& validity) {
  if (dns_names.empty()) return fail(Remedy::kFixInput, "a limited CA needs at least one DNS name");
  return new_ca(common_name, dns_names, validity);
}

Result<std::string> reissue_limited_ca(const Identity& ca, const std::vector<std::string>& dns_names) {
  if (dns_names.empty()) return fail(Remedy::kFixInput, "a limited CA needs at least one DNS name");
  NEZHA_TRY(check_pair(ca));
  NEZHA_TRY(const CertificatePtr before, parse_certificate(ca.certificate_pem));
  if (X509_check_ca(before.get()) != 1) return fail(Remedy::kFixInput, "the certificate is no CA's");
  NEZHA_TRY(KeyPtr key, parse_key(ca.key_pem));
  const Validity validity{wall_of(X509_get0_notBefore(before.get())), wall_of(X509_get0_notAfter(before.get()))};
  NEZHA_TRY(const Draft draft, make_draft(std::move(key), "", validity));
  if (X509_set_subject_name(draft.certificate.get(), X509_get_subject_name(before.get())) != 1)
    return outcome::failure(library_error("cannot copy a subject"));
  NEZHA_TRY(Identity issued, finish_ca(draft, dns_names));
  return std::move(issued.certificate_pem);
}

Result<Identity> make_leaf(const Identity& ca, const std::vector<std::string>& dns_names, const Validity& validity) {
  NEZHA_TRY(KeyPtr key, new_key());
  return leaf_of_key(ca, std::move(key), dns_names, validity);
}

Result<std::string> make_leaf_of_key(const Identity& ca, std::string_view key_pem,
                                     const std::vector<std::string>& dns_names, const Validity& validity) {
  NEZHA_TRY(KeyPtr key, parse_key(key_pem));
  NEZHA_TRY(Identity leaf, leaf_of_key(ca, std::move(key), dns_names, validity));
  return std::move(leaf.certificate_pem);
}

Result<std::string> make_key() {
  NEZHA_TRY(const KeyPtr key, new_key());
  return pem_of(key.get());
}

}  // namespace nezha::pki
