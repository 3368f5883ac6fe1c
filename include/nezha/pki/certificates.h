// Makes and inspects X.509 certificates as PEM text: CAs, leaves signed by them, chains, expiry. OpenSSL stays behind.
// Keys are ECDSA P-256, signatures SHA-256, serials random. No file, no clock: times come in, so tests can choose them.
// Failures: kFixInput for PEM that is none or does not fit together (the message says which part and why),
// kGiveUp when the library itself fails. Messages never hold key material.
// Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/clock.h"
#include "nezha/base/result.h"

namespace nezha::pki {

struct Identity {
  std::string certificate_pem;
  std::string key_pem;  // PKCS#8, not encrypted
  friend bool operator==(const Identity&, const Identity&) = default;
};

struct Validity {
  WallTime not_before;
  WallTime not_after;
};

struct CertificateInfo {
  std::string subject;      // one line
  std::string fingerprint;  // SHA-256 of the DER form, lower-case hex
  Validity validity;
  bool is_ca = false;
  std::vector<std::string> dns_names;
  std::vector<std::string> permitted_names;  // of the name constraints; empty: none, or no DNS name among them
};

// A self-signed CA that may sign leaves only (path length 0). A random suffix makes its subject its own, so that two
// CAs in one bundle cannot be mixed up.
[[nodiscard]] Result<Identity> make_ca(std::string_view common_name, const Validity& validity);

// A CA whose certificates hold for these DNS names (and names below them) alone: critical name constraints permit
// them and leave no IP address, mail address or URI. kFixInput: no name.
[[nodiscard]] Result<Identity> make_limited_ca(std::string_view common_name, const std::vector<std::string>& dns_names,
                                               const Validity& validity);

// The same CA (key, subject, times) for other names: what it signed before holds under the new certificate too, as
// far as the names go. Returns the certificate. kFixInput: no name, or `ca` is no usable CA.
[[nodiscard]] Result<std::string> reissue_limited_ca(const Identity& ca, const std::vector<std::string>& dns_names);

// A server certificate for these DNS names, signed by `ca`. Its end is cut to the CA's.
// kFixInput: no name, or `ca` is no usable CA.
[[nodiscard]] Result<Identity> make_leaf(const Identity& ca, const std::vector<std::string>& dns_names,
                                         const Validity& validity);

// The same for a key that exists. Returns the certificate.
[[nodiscard]] Result<std::string> make_leaf_of_key(const Identity& ca, std::string_view key_pem,
                                                   const std::vector<std::string>& dns_names, const Validity& validity);

// A private key, PKCS#8.
[[nodiscard]] Result<std::string> make_key();

// The first certificate of the text.
[[nodiscard]] Result<CertificateInfo> inspect(std::string_view certificate_pem);

// The key belongs to the (first) certificate.
[[nodiscard]] Result<> check_pair(const Identity& identity);

// `leaf_pem` chains to `ca_pem`, both are valid at `at`, and the leaf serves TLS for `dns_name`.
[[nodiscard]] Result<> check_chain(std::string_view leaf_pem, std::string_view ca_pem, std::string_view dns_name,
                                   WallTime at);

// The certificates as a PKCS#12 file in which Java trusts each of them; the password guards nothing, but Java asks for
// one. The same certificates make the same bytes.
[[nodiscard]] Result<std::string> make_trust_store(const std::vector<std::string>& certificates_pem,
                                                   const std::string& password);

// The certificates of a bundle, each as canonical PEM, in order. Text between them is dropped, and so is what
// does not parse: a bundle is somebody else's text.
std::vector<std::string> split_bundle(std::string_view pem);

}  // namespace nezha::pki
