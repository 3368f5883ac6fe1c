// Looking at certificates: contents, pairs, chains, bundles.
#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>

#include "nezha/pki/certificates.h"
#include "src/pki/openssl.h"

namespace nezha::pki {
namespace {

namespace outcome = BOOST_OUTCOME_V2_NAMESPACE;

std::string subject_of(X509* certificate) {
  const BioPtr writer(BIO_new(BIO_s_mem()));
  if (!writer || X509_NAME_print_ex(writer.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) < 0)
    return {};
  return text_of(writer.get());
}

std::string fingerprint_of(X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return {};
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (unsigned int i = 0; i < size; ++i) out += {kHex[digest[i] >> 4], kHex[digest[i] & 15]};
  return out;
}

std::string dns_name_of(const GENERAL_NAME* name) {
  const auto* data = reinterpret_cast<const char*>(ASN1_STRING_get0_data(name->d.dNSName));
  return {data, static_cast<size_t>(ASN1_STRING_length(name->d.dNSName))};
}

std::vector<std::string> permitted_names_of(X509* certificate) {
  std::vector<std::string> out;
  const ConstraintsPtr constraints(
      static_cast<NAME_CONSTRAINTS*>(X509_get_ext_d2i(certificate, NID_name_constraints, nullptr, nullptr)));
  for (int i = 0; constraints && i < sk_GENERAL_SUBTREE_num(constraints->permittedSubtrees); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_SUBTREE_value(constraints->permittedSubtrees, i)->base;
    if (name->type == GEN_DNS) out.push_back(dns_name_of(name));
  }
  return out;
}

std::vector<std::string> dns_names_of(X509* certificate) {
  std::vector<std::string> out;
  const NamesPtr names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) out.push_back(dns_name_of(name));
  }
  return out;
}

}  // namespace

Result<CertificateInfo> inspect(std::string_view certificate_pem) {
  NEZHA_TRY(const CertificatePtr certificate, parse_certificate(certificate_pem));
  return CertificateInfo{
      .subject = subject_of(certificate.get()),
      .fingerprint = fingerprint_of(certificate.get()),
      .validity = {wall_of(X509_get0_notBefore(certificate.get())), wall_of(X509_get0_notAfter(certificate.get()))},
      .is_ca = X509_check_ca(certificate.get()) == 1,
      .dns_names = dns_names_of(certificate.get()),
      .permitted_names = permitted_names_of(certificate.get())};
}

Result<> check_pair(const Identity& identity) {
  NEZHA_TRY(const CertificatePtr certificate, parse_certificate(identity.certificate_pem));
  NEZHA_TRY(const KeyPtr key, parse_key(identity.key_pem));
  const int matches = X509_check_private_key(certificate.get(), key.get());
  ERR_clear_error();
  if (matches != 1) return fail(Remedy::kFixInput, "the key does not belong to the certificate");
  return ok();
}

Result<> check_chain(std::string_view leaf_pem, std::string_view ca_pem, std::string_view dns_name, WallTime at) {
  NEZHA_TRY(const CertificatePtr leaf, parse_certificate(leaf_pem));
  NEZHA_TRY(const CertificatePtr ca, parse_certificate(ca_pem));
  const StorePtr store(X509_STORE_new());
  const StoreContextPtr context(X509_STORE_CTX_new());
  if (!store || !context || X509_STORE_add_cert(store.get(), ca.get()) != 1 ||
      X509_STORE_CTX_init(context.get(), store.get(), leaf.get(), nullptr) != 1) {
    return outcome::failure(library_error("cannot check a certificate chain"));
  }
  X509_VERIFY_PARAM* const rules = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(rules, std::chrono::system_clock::to_time_t(at));
  X509_VERIFY_PARAM_set_purpose(rules, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set1_host(rules, dns_name.data(), dns_name.size());
  const bool good = X509_verify_cert(context.get()) == 1;
  const int reason = X509_STORE_CTX_get_error(context.get());
  ERR_clear_error();
  if (!good) {
    return fail(Remedy::kFixInput,
                std::string("the certificate does not hold: ") + X509_verify_cert_error_string(reason));
  }
  return ok();
}

std::vector<std::string> split_bundle(std::string_view pem) {
  std::vector<std::string> out;
  constexpr std::string_view kBegin = "-----BEGIN CERTIFICATE-----";
  for (size_t at = pem.find(kBegin); at != std::string_view::npos;) {
    const size_t next = pem.find(kBegin, at + kBegin.size());
    const auto certificate = parse_certificate(pem.substr(at, next == std::string_view::npos ? next : next - at));
    if (certificate) {
      auto canonical = pem_of(certificate.value().get());
      if (canonical) out.push_back(std::move(canonical).value());
    }
    at = next;
  }
  return out;
}

}  // namespace nezha::pki
