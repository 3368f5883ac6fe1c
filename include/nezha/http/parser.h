// Parsers from bytes to messages, strict as RFC 9112 asks of intermediaries. Boost.Beast stays behind this header.
// Pure: no socket. The caller keeps unconsumed bytes and offers them again with more behind them.
//
// Refused, never repaired or forwarded: bare CR or LF, a folded field of a request, white space before a colon, both
// Content-Length and Transfer-Encoding, differing Content-Lengths, any coding but a final `chunked`, Transfer-Encoding
// in HTTP/1.0, a request without exactly one Host (1.1), heads over limits::kHeadBytesMax or kHeadFieldsMax.
// A Content-Length written in an odd way ("5, 5", "005") is accepted and becomes one plain number.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nezha/http/message.h"

namespace nezha::http {

// What a head parser made of the bytes so far.
struct HeadStep {
  enum class Kind { kNeedMore, kDone, kBad };
  Kind kind = Kind::kNeedMore;
  size_t consumed_bytes = 0;  // with kDone: the head's size; bytes behind it belong to the body
  int status = 0;             // with kBad: 400, 431, 501 or 505 for a request; meaningless for a response
  std::string reason;         // with kBad: one line for a person
};

// Each call starts afresh from bytes[0]. Fills `into` when the result is kDone; its capacity is reused.
HeadStep parse_request_head(std::string_view bytes, RequestHead& into);
// `to_head`: the response answers a HEAD request, so it has no body whatever its fields say.
HeadStep parse_response_head(std::string_view bytes, bool to_head, ResponseHead& into);

// The chunked coding (RFC 9112 §7.1), one body. Extensions and trailers are checked and dropped.
class ChunkedDecoder {
 public:
  struct Step {
    enum class Kind { kNeedMore, kData, kEnd, kBad };
    Kind kind = Kind::kNeedMore;
    size_t consumed_bytes = 0;  // with every kind; kNeedMore may consume framing bytes
    std::string_view data;      // with kData: borrowed from the bytes offered
  };
  // Never consumes bytes behind the final empty line. kData shows at most `data_bytes_max` bytes at a time.
  Step decode(std::string_view bytes, size_t data_bytes_max = SIZE_MAX);

 private:
  enum class State { kSize, kData, kDataEnd, kTrailer, kEnd };
  Step decode_size(std::string_view bytes);
  Step decode_trailer(std::string_view bytes);
  State state_ = State::kSize;
  uint64_t left_bytes_ = 0;
  size_t trailer_bytes_ = 0;
};

}  // namespace nezha::http
