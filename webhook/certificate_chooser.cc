#include "webhook/certificate_chooser.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <vector>

#include "nezha/base/freer.h"

namespace nezha::webhook {
namespace {

using Bio = std::unique_ptr<BIO, Freer<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

Bio reader(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

// Refuses encrypted keys instead of asking for a passphrase at the terminal.
int no_passphrase(char*, int, int, void*) { return 0; }

}  // namespace

struct CertificateChooser::Parsed {
  Certificate leaf;
  std::vector<Certificate> intermediates;
  Key key;
};

CertificateChooser::CertificateChooser(const CertificateSource& source, obs::Log& log) : source_(source), log_(log) {}
CertificateChooser::~CertificateChooser() = default;

void CertificateChooser::attach(SSL_CTX& context) {
  SSL_CTX_set_cert_cb(&context, &CertificateChooser::on_handshake, this);
}

int CertificateChooser::on_handshake(SSL* connection, void* self) {
  const auto parsed = static_cast<CertificateChooser*>(self)->current();
  if (!parsed) return 0;  // fails the handshake
  SSL_certs_clear(connection);
  if (SSL_use_certificate(connection, parsed->leaf.get()) != 1) return 0;
  for (const auto& intermediate : parsed->intermediates)
    if (SSL_add1_chain_cert(connection, intermediate.get()) != 1) return 0;
  return SSL_use_PrivateKey(connection, parsed->key.get()) == 1;
}

std::shared_ptr<const CertificateChooser::Parsed> CertificateChooser::current() {
  auto pair = source_.current();
  std::lock_guard lock(mutex_);
  if (pair == seen_ || !pair) return parsed_;
  seen_ = std::move(pair);
  auto parsed = parse(*seen_);
  if (parsed)
    parsed_ = parsed.value();
  else
    log_.error("the new serving certificate cannot be used; the last good one stays",
               {{"reason", parsed.error().message}});
  return parsed_;
}

Result<std::shared_ptr<const CertificateChooser::Parsed>> CertificateChooser::parse(const KeyPair& pair) {
  auto parsed = std::make_shared<Parsed>();
  const Bio certificates = reader(pair.certificate_pem);
  parsed->leaf.reset(PEM_read_bio_X509(certificates.get(), nullptr, no_passphrase, nullptr));
  while (parsed->leaf) {
    Certificate next(PEM_read_bio_X509(certificates.get(), nullptr, no_passphrase, nullptr));
    if (!next) break;
    parsed->intermediates.push_back(std::move(next));
  }
  parsed->key.reset(PEM_read_bio_PrivateKey(reader(pair.key_pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();  // the end of the PEM text is an error to OpenSSL
  if (!parsed->leaf) return fail(Remedy::kFixInput, "no certificate in PEM format");
  if (!parsed->key) return fail(Remedy::kFixInput, "no unencrypted private key in PEM format");
  const bool fits = X509_check_private_key(parsed->leaf.get(), parsed->key.get()) == 1;
  ERR_clear_error();
  if (!fits) return fail(Remedy::kFixInput, "the private key does not belong to the certificate");
  return std::shared_ptr<const Parsed>(std::move(parsed));
}

}  // namespace nezha::webhook
