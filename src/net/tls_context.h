// Owners of OpenSSL's objects, and the contexts behind TlsServer and TlsClient. Private to src/net.
// Threads: contexts any; OpenSSL's error queue is per thread and emptied by whoever reads it.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <mutex>
#include <string>

#include "nezha/base/freer.h"
#include "nezha/net/tls.h"

namespace nezha::net {

using ContextPtr = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using SslPtr = std::unique_ptr<SSL, Freer<SSL_free>>;

// The library's words for the last failure on this thread.
std::string tls_reason();

class TlsServer {
 public:
  explicit TlsServer(ContextPtr context) : context_(std::move(context)) {}
  SslPtr start() const;

 private:
  ContextPtr context_;
};

class TlsClient {
 public:
  explicit TlsClient(std::string roots_pem) : roots_pem_(std::move(roots_pem)) {}
  // kGiveUp: the library failed.
  Result<SslPtr> start(const TlsNames& names) const;

 private:
  void make_context() const;
  const std::string roots_pem_;
  mutable std::once_flag once_;
  mutable ContextPtr context_;
};

}  // namespace nezha::net
