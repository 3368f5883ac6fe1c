// RequestHead, ResponseHead: the parsed start of a message and how its body is framed (RFC 9112 §6).
// Values only; parser.h makes them from bytes, serialise() makes bytes of them.
// Threads: values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "nezha/http/fields.h"

namespace nezha::http {

// Where a body ends.
struct Framing {
  enum class Kind { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length_bytes = 0;  // only with kLength
};

struct RequestHead {
  std::string method;  // as received, case-sensitive
  std::string target;  // byte for byte: never decoded, merged or re-encoded
  int minor_version = 1;
  bool keep_alive = true;
  Framing framing;
  Fields fields;
};

struct ResponseHead {
  int status = 0;
  std::string reason;
  int minor_version = 1;
  bool keep_alive = true;
  Framing framing;  // for a GET; HEAD, 1xx, 204 and 304 never have a body
  Fields fields;
};

// "METHOD target HTTP/1.1\r\nName: value\r\n…\r\n". Writes exactly what the head holds.
std::string serialise(const RequestHead& head);
// "HTTP/1.1 status reason\r\n…\r\n"; without the empty line when `open` (the caller appends more fields).
std::string serialise(const ResponseHead& head);

// Fields that end at this hop: Connection and what it names, Keep-Alive, Proxy-Connection, TE, Transfer-Encoding,
// Upgrade, Proxy-Authenticate, Proxy-Authorization (RFC 9110 §7.6.1). Framing fields are not removed here.
void remove_hop_by_hop(Fields& fields);

// A reason phrase for a status that we generate or serve from the store.
std::string_view reason_of(int status);

}  // namespace nezha::http
