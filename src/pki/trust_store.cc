// Certificates -> PKCS#12 with the attribute by which Java trusts them.
#include <openssl/objects.h>
#include <openssl/pkcs12.h>

#include "nezha/pki/certificates.h"
#include "src/pki/openssl.h"

namespace nezha::pki {
namespace {

namespace outcome = BOOST_OUTCOME_V2_NAMESPACE;

constexpr const char* kTrustedKeyUsage = "2.16.840.1.113894.746875.1.1";  // Oracle's
constexpr int kMacIterations = 2048;
constexpr size_t kSaltBytes = 8;

void free_bags(STACK_OF(PKCS12_SAFEBAG) * bags) { sk_PKCS12_SAFEBAG_pop_free(bags, PKCS12_SAFEBAG_free); }
void free_safes(STACK_OF(PKCS7) * safes) { sk_PKCS7_pop_free(safes, PKCS7_free); }

// OpenSSL's stacks grow through a pointer to a pointer, so these hold them bare.
struct Bags {
  ~Bags() { free_bags(list); }
  STACK_OF(PKCS12_SAFEBAG) * list = nullptr;
};
struct Safes {
  ~Safes() { free_safes(list); }
  STACK_OF(PKCS7) * list = nullptr;
};

bool add(Bags& bags, X509* certificate, const std::string& name) {
  PKCS12_SAFEBAG* const bag = PKCS12_add_cert(&bags.list, certificate);  // owned by the list
  const auto* any_usage = reinterpret_cast<const unsigned char*>(OBJ_nid2obj(NID_anyExtendedKeyUsage));
  return bag != nullptr && PKCS12_add_friendlyname_utf8(bag, name.data(), static_cast<int>(name.size())) == 1 &&
         PKCS12_add1_attr_by_txt(bag, kTrustedKeyUsage, V_ASN1_OBJECT, any_usage, -1) == 1;
}

}  // namespace

Result<std::string> make_trust_store(const std::vector<std::string>& certificates_pem, const std::string& password) {
  Bags bags;
  std::string all;
  for (const std::string& pem : certificates_pem) {
    NEZHA_TRY(const CertificatePtr certificate, parse_certificate(pem));
    if (!add(bags, certificate.get(), "ca-" + std::to_string(sk_PKCS12_SAFEBAG_num(bags.list)))) {
      return outcome::failure(library_error("cannot put a certificate into a trust store"));
    }
    all += pem;
  }
  // Neither encrypted nor salted by chance: certificates are public, and who compares two stores wants no difference.
  unsigned char salt[EVP_MAX_MD_SIZE];
  EVP_Digest(all.data(), all.size(), salt, nullptr, EVP_sha256(), nullptr);
  Safes safes;
  const bool packed = PKCS12_add_safe(&safes.list, bags.list, /*nid_safe=*/-1, 0, nullptr) == 1;
  const std::unique_ptr<PKCS12, Freer<PKCS12_free>> store(packed ? PKCS12_add_safes(safes.list, 0) : nullptr);
  // SHA-1: what Java 8 checks in all its releases.
  if (!store || PKCS12_set_mac(store.get(), password.data(), static_cast<int>(password.size()), salt, kSaltBytes,
                               kMacIterations, EVP_sha1()) != 1) {
    return outcome::failure(library_error("cannot make a trust store"));
  }
  const BioPtr writer(BIO_new(BIO_s_mem()));
  if (!writer || i2d_PKCS12_bio(writer.get(), store.get()) != 1) {
    return outcome::failure(library_error("cannot write a trust store"));
  }
  return text_of(writer.get());
}

}  // namespace nezha::pki
