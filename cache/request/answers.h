// Heads of the answers a cache gives: from the store, relayed, or of its own. Pure text.
// Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cache/classify/stored_head.h"
#include "nezha/http/message.h"
#include "nezha/http/range.h"

namespace nezha::cache {

// Cache-Status (RFC 9211), the value behind "nezha; ".
std::string hit_status(http::Seconds ttl);

struct HeadOptions {
  std::string cache_status;
  bool close = false;  // this is the connection's last answer
  WallTime now{};
  bool checksums = true;  // S3: the reader asked for them
};

// The stored status with the whole representation; `length` absent: chunked (or until close with `close`).
std::string stored_head_text(const StoredHead& stored, std::optional<uint64_t> length, bool chunked,
                             const HeadOptions& options);
std::string stored_partial_text(const StoredHead& stored, http::ByteRange range, const HeadOptions& options);
// 206 with several parts: `content_type` and `size_bytes` are those of the multipart body.
std::string stored_multipart_text(const StoredHead& stored, std::string_view content_type, uint64_t size_bytes,
                                  const HeadOptions& options);
std::string stored_unsatisfiable_text(const StoredHead& stored, const HeadOptions& options);
// 304 with the fields of RFC 9110 §15.4.5, or 412.
std::string stored_condition_text(const StoredHead& stored, http::Precondition outcome, const HeadOptions& options);

// An upstream's head on its way to a client: end-to-end fields as they came, framing for this hop.
struct RelayFraming {
  bool chunked = false;  // the body is sent in chunks
  bool close = false;    // the body ends with the connection
};
RelayFraming relay_framing(const http::ResponseHead& head, int client_minor_version);
std::string relayed_head_text(const http::ResponseHead& head, RelayFraming framing, const HeadOptions& options);

// A whole answer of our own: a short text for a person.
std::string own_answer(int status, std::string_view text, bool with_body, const HeadOptions& options);

}  // namespace nezha::cache
