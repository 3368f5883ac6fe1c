// CertificateSource: where the admission server gets the certificate it presents, asked at every TLS handshake.
// An implementation swaps the pair when it rotates; connections that are already open keep the one they began with.
// It does not say how a pair is made, stored or checked.
// Threads: current() may be called from any thread, at any time, and must not block on I/O.
#pragma once

#include <memory>
#include <string>

namespace nezha::webhook {

struct KeyPair {
  std::string certificate_pem;  // the leaf first, then its intermediates
  std::string key_pem;          // the leaf's private key, not encrypted
};

class CertificateSource {
 public:
  virtual ~CertificateSource() = default;
  // The pair to present now. Null: none is loaded yet, handshakes fail until there is one.
  // Return the same pointer while the pair is the same: the server parses a pair once per pointer.
  virtual std::shared_ptr<const KeyPair> current() const = 0;
};

}  // namespace nezha::webhook
