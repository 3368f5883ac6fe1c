// The server name a TLS client asks for, read from its ClientHello without decrypting anything (RFC 8446 §4.1.2,
// RFC 6066 §3). Pure; hostile bytes are expected.
// Threads: any.
#pragma once

#include <string>
#include <string_view>

namespace nezha::cache {

struct ClientHello {
  enum class Kind { kNeedMore, kDone, kBad };
  Kind kind = Kind::kNeedMore;
  std::string server_name;    // with kDone: lower case; empty when the client names none
  bool accepts_http1 = true;  // with kDone: it offers no list of protocols (ALPN), or http/1.1 is on it
};

// `bytes`: everything received so far, from the first record on. A hello over 64 KiB is bad.
ClientHello parse_client_hello(std::string_view bytes);

}  // namespace nezha::cache
