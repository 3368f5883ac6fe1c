// CertificateChooser: gives every TLS handshake of a context the certificate that is current at that moment.
// A pair is parsed once; one that does not parse, or whose key does not fit, is reported and the last good one stays.
// Threads: any; handshakes of several threads may ask at once.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <mutex>

#include "nezha/base/result.h"
#include "nezha/obs/log.h"
#include "webhook/certificate_source.h"

namespace nezha::webhook {

class CertificateChooser {
 public:
  // Borrowed; both must outlive the chooser.
  CertificateChooser(const CertificateSource& source, obs::Log& log);
  ~CertificateChooser();
  CertificateChooser(const CertificateChooser&) = delete;
  CertificateChooser& operator=(const CertificateChooser&) = delete;

  // REQUIRES: *this outlives the context.
  void attach(SSL_CTX& context);

 private:
  struct Parsed;
  static int on_handshake(SSL* connection, void* self);
  static Result<std::shared_ptr<const Parsed>> parse(const KeyPair& pair);
  std::shared_ptr<const Parsed> current();

  const CertificateSource& source_;
  obs::Log& log_;
  std::mutex mutex_;
  std::shared_ptr<const KeyPair> seen_;  // the pair looked at last, good or bad
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace nezha::webhook
