#include "src/pki/openssl.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <ctime>

namespace nezha::pki {

Error library_error(std::string_view what) {
  char text[256] = "no reason given";
  const unsigned long code = ERR_peek_last_error();
  if (code != 0) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return Error{Remedy::kGiveUp, std::string(what) + ": " + text};
}

BioPtr reader_of(std::string_view text) { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

Result<CertificatePtr> parse_certificate(std::string_view pem) {
  const BioPtr reader = reader_of(pem);
  CertificatePtr certificate(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (!certificate) return fail(Remedy::kFixInput, "not a PEM certificate");
  return certificate;
}

Result<KeyPtr> parse_key(std::string_view pem) {
  const BioPtr reader = reader_of(pem);
  // An encrypted key must fail, not ask a terminal for its password.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  KeyPtr key(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (!key) return fail(Remedy::kFixInput, "not an unencrypted PEM private key");
  return key;
}

Result<std::string> pem_of(X509* certificate) {
  const BioPtr writer(BIO_new(BIO_s_mem()));
  if (!writer || PEM_write_bio_X509(writer.get(), certificate) != 1) {
    return BOOST_OUTCOME_V2_NAMESPACE::failure(library_error("cannot write a certificate as PEM"));
  }
  return text_of(writer.get());
}

Result<std::string> pem_of(EVP_PKEY* key) {
  const BioPtr writer(BIO_new(BIO_s_mem()));
  if (!writer || PEM_write_bio_PKCS8PrivateKey(writer.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return BOOST_OUTCOME_V2_NAMESPACE::failure(library_error("cannot write a key as PEM"));
  }
  return text_of(writer.get());
}

WallTime wall_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(time, &parts) != 1) return WallTime{};
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

}  // namespace nezha::pki
