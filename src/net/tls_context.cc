// How we speak TLS, decided once: versions, ciphers, tickets, what a certificate must say.
#include "src/net/tls_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstring>

#include "nezha/base/check.h"

namespace nezha::net {
namespace {

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using CertificatePtr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

constexpr unsigned char kProtocols[] = "\x08http/1.1";
constexpr long kTicketSeconds = 3600;
// As strong as the usual certificates, and the fastest; a client without AES in hardware says so by its own order.
constexpr char kSuites13[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
constexpr char kSuites12[] =
    "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:"
    "ECDHE-RSA-AES256-GCM-SHA384:ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

BioPtr reader_of(std::string_view text) { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

// An encrypted key must fail, not ask a terminal for its password.
int no_password(char*, int, int, void*) { return -1; }

ContextPtr new_context(const SSL_METHOD* method) {
  ContextPtr context(SSL_CTX_new(method));
  NEZHA_CHECK(context != nullptr, "OpenSSL makes no context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);  // what rests must not hold 34 KiB
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context.get(), 1);
  return context;
}

int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                    unsigned int in_size, void*) {
  for (unsigned int at = 0; at < in_size && at + 1 + in[at] <= in_size; at += 1u + in[at]) {
    if (in[at] != kProtocols[0] || std::memcmp(in + at, kProtocols, 1 + kProtocols[0]) != 0) continue;
    *out = in + at + 1;
    *out_size = in[at];
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

// Leaf first, then what leads to its root.
Result<void> use_chain(SSL_CTX& context, std::string_view chain_pem) {
  const BioPtr reader = reader_of(chain_pem);
  const CertificatePtr leaf(PEM_read_bio_X509(reader.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (!leaf) return fail(Remedy::kFixInput, "no certificate in PEM format");
  if (SSL_CTX_use_certificate(&context, leaf.get()) != 1)
    return fail(Remedy::kFixInput, "the certificate cannot be used: " + tls_reason());
  for (;;) {
    const CertificatePtr next(PEM_read_bio_X509(reader.get(), nullptr, no_password, nullptr));
    ERR_clear_error();  // the end of the text is an error to OpenSSL
    if (!next) return ok();
    if (SSL_CTX_add1_chain_cert(&context, next.get()) != 1)
      return fail(Remedy::kFixInput, "a certificate of the chain cannot be used: " + tls_reason());
  }
}

bool is_ip(const std::string& name) {
  const std::unique_ptr<ASN1_OCTET_STRING, Freer<ASN1_OCTET_STRING_free>> ip(a2i_IPADDRESS(name.c_str()));
  ERR_clear_error();
  return ip != nullptr;
}

}  // namespace

std::string tls_reason() {
  const unsigned long code = ERR_peek_error();
  const char* const text = code == 0 ? nullptr : ERR_reason_error_string(code);
  ERR_clear_error();
  return text ? text : "no reason given";
}

Result<std::shared_ptr<const TlsServer>> make_tls_server(std::string_view chain_pem, std::string_view key_pem) {
  ContextPtr context = new_context(TLS_server_method());
  SSL_CTX_set_options(context.get(), SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
  SSL_CTX_set_timeout(context.get(), kTicketSeconds);
  SSL_CTX_set_alpn_select_cb(context.get(), choose_protocol, nullptr);
  const bool suites =
      SSL_CTX_set_ciphersuites(context.get(), kSuites13) == 1 && SSL_CTX_set_cipher_list(context.get(), kSuites12) == 1;
  NEZHA_CHECK(suites, "OpenSSL does not know our ciphers");
  NEZHA_TRY(use_chain(*context, chain_pem));
  const BioPtr reader = reader_of(key_pem);
  const KeyPtr key(PEM_read_bio_PrivateKey(reader.get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  if (!key) return fail(Remedy::kFixInput, "no unencrypted private key in PEM format");
  if (SSL_CTX_use_PrivateKey(context.get(), key.get()) != 1 || SSL_CTX_check_private_key(context.get()) != 1) {
    ERR_clear_error();
    return fail(Remedy::kFixInput, "the private key does not belong to the certificate");
  }
  return std::make_shared<const TlsServer>(std::move(context));
}

SslPtr TlsServer::start() const {
  SslPtr ssl(SSL_new(context_.get()));
  NEZHA_CHECK(ssl != nullptr, "OpenSSL makes no connection");
  SSL_set_accept_state(ssl.get());
  return ssl;
}

std::shared_ptr<const TlsClient> make_tls_client(std::string roots_pem) {
  return std::make_shared<const TlsClient>(std::move(roots_pem));
}

void TlsClient::make_context() const {
  context_ = new_context(TLS_client_method());
  SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_alpn_protos(context_.get(), kProtocols, sizeof kProtocols - 1);
  if (roots_pem_.empty()) {
    SSL_CTX_set_default_verify_paths(context_.get());
  } else {
    const BioPtr reader = reader_of(roots_pem_);
    for (;;) {
      const CertificatePtr root(PEM_read_bio_X509(reader.get(), nullptr, no_password, nullptr));
      if (!root) break;
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), root.get());
    }
  }
  ERR_clear_error();
}

Result<SslPtr> TlsClient::start(const TlsNames& names) const {
  std::call_once(once_, [this] { make_context(); });
  SslPtr ssl(SSL_new(context_.get()));
  NEZHA_CHECK(ssl != nullptr, "OpenSSL makes no connection");
  SSL_set_connect_state(ssl.get());
  SSL_set_hostflags(ssl.get(), X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  bool good = SSL_set_tlsext_host_name(ssl.get(), names.server.c_str()) == 1 &&
              SSL_set1_host(ssl.get(), names.server.c_str()) == 1;
  if (!names.or_for.empty() && !is_ip(names.or_for)) good &= SSL_add1_host(ssl.get(), names.or_for.c_str()) == 1;
  if (!good) return fail(Remedy::kGiveUp, "TLS to \"" + names.server + "\": " + tls_reason());
  return ssl;
}

}  // namespace nezha::net
