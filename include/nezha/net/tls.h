// Tls: streams that speak TLS 1.2 or 1.3 over another stream, as server or as client. OpenSSL stays behind.
// What they promise beyond Stream:
// - an orderly end is one with close_notify: without it, reading fails, so that a body cut short is never taken for
//   whole; shutdown_send() and close(false) send ours, close(true) does not;
// - pieces that are written become full records, and several records leave in one write of the stream below. What is
//   mapped is encrypted where it lies: a page that cannot be read is a signal here, not an error, so the caller makes
//   pieces resident first;
// - what try_write() did not report must come again, first, in the next writes: a part of it may be encrypted already;
// - protocol: ALPN http/1.1 alone, resumption by tickets, no renegotiation, no compression, no early data.
// kTLS is not used: records are made in user space.
// Threads: streams on their loop; TlsServer and TlsClient are shared by all loops.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "nezha/net/stream.h"

namespace nezha::net {

// Where records are put together before they leave. One per loop, borrowed by its streams, which it outlives.
struct TlsScratch {
  std::string records;  // one write's
  std::string plain;    // one record's, when its bytes lie in several pieces
};

// A certificate with its chain and key: what a server is known by.
class TlsServer;
// kFixInput: not PEM, a key that does not belong to the certificate, or one too weak; the message says which.
Result<std::shared_ptr<const TlsServer>> make_tls_server(std::string_view chain_pem, std::string_view key_pem);

// `received`: bytes already read from the client, from its first one on. Fails with kTimedOut after `deadline`, with
// kRetryLater when the handshake does not succeed or the client leaves; the message says why. A client that made a
// mistake was told by an alert.
Task<Result<std::unique_ptr<Stream>>> accept_tls(const TlsServer& server, TlsScratch& scratch,
                                                 std::unique_ptr<Stream> client, std::string_view received,
                                                 SteadyTime deadline);

// The authorities whose word is taken for a server's name. Made at the first use.
class TlsClient;
// `roots_pem`: empty for the system's (or those of SSL_CERT_FILE and SSL_CERT_DIR).
std::shared_ptr<const TlsClient> make_tls_client(std::string roots_pem);

struct TlsNames {
  std::string server;       // asked for by SNI; the certificate must be for it
  std::string or_for = {};  // or for this name; an empty one is none, and so is an IP address
};
// Fails with kTimedOut after `deadline`, with kRetryLater when the server's certificate does not hold or the handshake
// does not succeed otherwise; the message says why.
Task<Result<std::unique_ptr<Stream>>> connect_tls(const TlsClient& client, TlsScratch& scratch,
                                                  std::unique_ptr<Stream> server, TlsNames names, SteadyTime deadline);

}  // namespace nezha::net
