// TlsPeer: a blocking TLS client or server of OpenSSL's over a test Socket, with its records cut as the test likes,
// that tells how a connection ended. TestPki: a CA and leaves for it. Threads: one at a time per peer.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/freer.h"
#include "nezha/pki/certificates.h"
#include "test/support/raw_client.h"
#include "test/support/socket.h"

namespace nezha::test {

using TlsContext = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using TlsSession = std::unique_ptr<SSL_SESSION, Freer<SSL_SESSION_free>>;

// Valid from an hour ago for a day, or as given.
struct TestPki {
  TestPki();
  pki::Identity leaf(const std::vector<std::string>& names) const;
  pki::Identity leaf(const std::vector<std::string>& names, const pki::Validity& validity) const;
  pki::Identity ca;
};

struct TlsPeerOptions {
  std::string name = "data.example";  // SNI, and what the certificate must say; empty: none
  std::string roots_pem = {};         // empty: the certificate is not looked at
  size_t fragment_bytes = 0;          // of what is sent; 0: as it comes
  int version = 0;                    // TLS1_2_VERSION; 0: any
  std::string protocols = {};         // ALPN, in wire form
  SSL_SESSION* resume = nullptr;
};

class TlsPeer {
 public:
  enum class End { kBytes, kGoodbye, kCut, kReset, kBroken, kTimeout };
  TlsPeer(Socket socket, const TlsPeerOptions& options);  // a client
  TlsPeer(Socket socket, const pki::Identity& identity);  // a server
  bool handshake();
  bool send(std::string_view bytes);
  // Appends plain bytes.
  End read(std::string& into);
  // Until `size` bytes are there, or the end; says which.
  End read_until(std::string& into, size_t size);
  // One HTTP answer with Content-Length or chunks; `end` of the answer as for RawClient, kTruncated after a goodbye and
  // kReset for everything else that is none.
  ClientAnswer ask(std::string_view request);
  void goodbye();  // sends close_notify
  bool resumed() const { return SSL_session_reused(ssl_.get()) == 1; }
  TlsSession session() const { return TlsSession(SSL_get1_session(ssl_.get())); }
  std::string protocol() const;
  std::string failure() const { return failure_; }
  SSL* ssl() { return ssl_.get(); }
  Socket& socket() { return socket_; }

 private:
  void attach();
  bool flush();
  End receive();
  Socket socket_;
  TlsContext context_;
  std::unique_ptr<SSL, Freer<SSL_free>> ssl_;
  BIO* in_ = nullptr;   // of ssl_
  BIO* out_ = nullptr;  // of ssl_
  size_t fragment_bytes_ = 0;
  std::string failure_;
};

}  // namespace nezha::test
