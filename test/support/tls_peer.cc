#include "test/support/tls_peer.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <array>
#include <cstdlib>

#include "nezha/base/check.h"

namespace nezha::test {
namespace {

using BioPtr = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using CertificatePtr = std::unique_ptr<X509, Freer<X509_free>>;
using KeyPtr = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;

pki::Validity today() {
  const WallTime now = std::chrono::system_clock::now();
  return {now - std::chrono::hours(1), now + std::chrono::hours(24)};
}

CertificatePtr certificate_of(const std::string& pem) {
  const BioPtr reader(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  return CertificatePtr(PEM_read_bio_X509(reader.get(), nullptr, nullptr, nullptr));
}

std::string last_failure() {
  const char* const text = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return text ? text : "";
}

}  // namespace

TestPki::TestPki() : ca(pki::make_ca("test", today()).value()) {}
pki::Identity TestPki::leaf(const std::vector<std::string>& names) const { return leaf(names, today()); }
pki::Identity TestPki::leaf(const std::vector<std::string>& names, const pki::Validity& validity) const {
  return pki::make_leaf(ca, names, validity).value();
}

TlsPeer::TlsPeer(Socket socket, const TlsPeerOptions& options)
    : socket_(std::move(socket)), context_(SSL_CTX_new(TLS_client_method())), fragment_bytes_(options.fragment_bytes) {
  if (options.version != 0) {
    SSL_CTX_set_min_proto_version(context_.get(), options.version);
    SSL_CTX_set_max_proto_version(context_.get(), options.version);
  }
  if (!options.roots_pem.empty()) {
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context_.get()), certificate_of(options.roots_pem).get());
  }
  ssl_.reset(SSL_new(context_.get()));
  SSL_set_connect_state(ssl_.get());
  if (!options.name.empty()) {
    SSL_set_tlsext_host_name(ssl_.get(), options.name.c_str());
    if (!options.roots_pem.empty()) SSL_set1_host(ssl_.get(), options.name.c_str());
  }
  if (!options.protocols.empty())
    SSL_set_alpn_protos(ssl_.get(), reinterpret_cast<const unsigned char*>(options.protocols.data()),
                        static_cast<unsigned>(options.protocols.size()));
  if (options.resume) SSL_set_session(ssl_.get(), options.resume);
  attach();
}

TlsPeer::TlsPeer(Socket socket, const pki::Identity& identity)
    : socket_(std::move(socket)), context_(SSL_CTX_new(TLS_server_method())) {
  const BioPtr reader(BIO_new_mem_buf(identity.key_pem.data(), static_cast<int>(identity.key_pem.size())));
  const KeyPtr key(PEM_read_bio_PrivateKey(reader.get(), nullptr, nullptr, nullptr));
  SSL_CTX_use_certificate(context_.get(), certificate_of(identity.certificate_pem).get());
  NEZHA_CHECK(SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1, "the test's own certificate");
  ssl_.reset(SSL_new(context_.get()));
  SSL_set_accept_state(ssl_.get());
  attach();
}

void TlsPeer::attach() {
  in_ = BIO_new(BIO_s_mem());
  out_ = BIO_new(BIO_s_mem());
  BIO_set_mem_eof_return(in_, -1);
  SSL_set_bio(ssl_.get(), in_, out_);
}

bool TlsPeer::flush() {
  char* data = nullptr;
  const long size = BIO_get_mem_data(out_, &data);
  const std::string bytes(data, static_cast<size_t>(size));
  (void)BIO_reset(out_);
  if (bytes.empty()) return true;
  return fragment_bytes_ == 0 ? socket_.send(bytes) : socket_.send_fragmented(bytes, fragment_bytes_);
}

TlsPeer::End TlsPeer::receive() {
  std::string bytes;
  switch (socket_.read_more(bytes)) {
    case Socket::Read::kBytes:
      BIO_write(in_, bytes.data(), static_cast<int>(bytes.size()));
      return End::kBytes;
    case Socket::Read::kEnd:
      return End::kCut;
    case Socket::Read::kReset:
      return End::kReset;
    case Socket::Read::kTimeout:
      return End::kTimeout;
  }
  return End::kBroken;
}

bool TlsPeer::handshake() {
  for (;;) {
    ERR_clear_error();
    const int done = SSL_do_handshake(ssl_.get());
    const int state = SSL_get_error(ssl_.get(), done);
    if (!flush() && done != 1) return false;
    if (done == 1) return true;
    if (state != SSL_ERROR_WANT_READ) {
      failure_ = last_failure();
      return false;
    }
    if (receive() != End::kBytes) return false;
  }
}

bool TlsPeer::send(std::string_view bytes) {
  return SSL_write(ssl_.get(), bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size()) &&
         flush();
}

TlsPeer::End TlsPeer::read(std::string& into) {
  std::array<char, 16384> buffer;
  for (;;) {
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), buffer.data(), static_cast<int>(buffer.size()));
    if (got > 0) {
      into.append(buffer.data(), static_cast<size_t>(got));
      return End::kBytes;
    }
    const int state = SSL_get_error(ssl_.get(), got);
    if (state == SSL_ERROR_ZERO_RETURN) return End::kGoodbye;
    if (state != SSL_ERROR_WANT_READ) {
      failure_ = last_failure();
      return End::kBroken;
    }
    (void)flush();
    const End end = receive();
    if (end != End::kBytes) return end;
  }
}

TlsPeer::End TlsPeer::read_until(std::string& into, size_t size) {
  while (into.size() < size) {
    const End end = read(into);
    if (end != End::kBytes) return end;
  }
  return End::kBytes;
}

ClientAnswer TlsPeer::ask(std::string_view request) {
  ClientAnswer answer;
  const auto ended = [&](End end) {
    answer.end = end == End::kGoodbye   ? ClientAnswer::End::kTruncated
                 : end == End::kTimeout ? ClientAnswer::End::kTimeout
                                        : ClientAnswer::End::kReset;
    return answer;
  };
  if (!send(request)) return ended(End::kReset);
  std::string bytes;
  size_t head_end;
  while ((head_end = bytes.find("\r\n\r\n")) == std::string::npos) {
    const End end = read(bytes);
    if (end != End::kBytes) return ended(end);
  }
  answer.head = bytes.substr(0, head_end + 4);
  answer.status = std::atoi(answer.head.c_str() + sizeof "HTTP/1.1");
  const size_t length = std::strtoull(answer.value("Content-Length").c_str(), nullptr, 10);
  answer.body = bytes.substr(head_end + 4);
  const End end = request.starts_with("HEAD") ? End::kBytes : read_until(answer.body, length);
  if (end != End::kBytes) return ended(end);
  answer.end = ClientAnswer::End::kComplete;
  return answer;
}

void TlsPeer::goodbye() {
  SSL_shutdown(ssl_.get());
  (void)flush();
}

std::string TlsPeer::protocol() const {
  const unsigned char* data = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_.get(), &data, &size);
  return std::string(reinterpret_cast<const char*>(data), size);
}

}  // namespace nezha::test
