// Response heads as an upstream sends them: framing rules of RFC 9112 §6.3, and what is no HTTP.
#include <gtest/gtest.h>

#include "nezha/http/parser.h"
#include "test/support/request_cases.h"

namespace nezha::http {
namespace {

using Kind = HeadStep::Kind;
using Frame = Framing::Kind;
using namespace std::string_literals;

struct ResponseCase {
  std::string bytes;
  int status;  // 0: not valid
  Frame framing = Frame::kNone;
  uint64_t length_bytes = 0;
  bool keep_alive = true;
  bool to_head = false;
};

std::vector<ResponseCase> response_cases() {
  return {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, Frame::kLength, 5},
      {"HTTP/1.1 200 \r\nContent-Length: 5\r\n\r\n", 200, Frame::kLength, 5},
      {"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", 200, Frame::kLength, 5},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, Frame::kChunked},
      {"HTTP/1.1 200 OK\r\n\r\n", 200, Frame::kUntilClose, 0, false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n", 200, Frame::kLength, 1, false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: Keep-Alive\r\n\r\n", 200, Frame::kLength, 1, true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n", 200, Frame::kLength, 1, false},
      {"HTTP/1.1 204 No Content\r\n\r\n", 204, Frame::kNone},
      {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", 204, Frame::kNone},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", 304, Frame::kNone},
      {"HTTP/1.1 100 Continue\r\n\r\n", 100, Frame::kNone},
      {"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 103, Frame::kNone},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", 200, Frame::kNone, 0, true, true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, Frame::kNone, 0, true, true},
      {"HTTP/1.1 599 Odd \xff reason\r\nContent-Length: 0\r\n\r\n", 599, Frame::kLength, 0},
      {"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n", 200, Frame::kLength, UINT64_MAX},
      // Refused: nothing of these can be relayed or stored with a known end.
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 0},
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", 0},
      {"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", 0},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 0},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n", 0},
      {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0},
      {"HTTP/1.1 200 OK\nContent-Length: 5\n\n", 0},
      {"HTTP/1.1 200 OK\r\nX : y\r\n\r\n", 0},
      {"HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n"s, 0},
      {"HTTP/1.1 20 OK\r\n\r\n", 0},
      {"HTTP/1.1 2000 OK\r\n\r\n", 0},
      {"HTTP/1.1 -20 OK\r\n\r\n", 0},
      {"HTTP/2.0 200 OK\r\n\r\n", 0},
      {"ICY 200 OK\r\n\r\n", 0},
      {"<html>an old server</html>\r\n\r\n", 0},
  };
}

HeadStep parse_in_fragments(const ResponseCase& wanted, size_t fragment_bytes, ResponseHead& into) {
  const std::string_view bytes(wanted.bytes);
  for (size_t have = 0; have < bytes.size();) {
    have = std::min(have + fragment_bytes, bytes.size());
    const HeadStep step = parse_response_head(bytes.substr(0, have), wanted.to_head, into);
    if (step.kind != Kind::kNeedMore) return step;
  }
  return {};
}

TEST(ResponseHead, TableAtEveryFragmentSize) {
  ResponseHead head;
  for (const auto& wanted : response_cases()) {
    for (const size_t size : test::fragment_sizes(wanted.bytes.size())) {
      SCOPED_TRACE(wanted.bytes + "fragments of " + std::to_string(size));
      const HeadStep step = parse_in_fragments(wanted, size, head);
      if (wanted.status == 0) {
        ASSERT_EQ(step.kind, Kind::kBad);
        continue;
      }
      ASSERT_EQ(step.kind, Kind::kDone) << step.reason;
      EXPECT_EQ(step.consumed_bytes, wanted.bytes.size());
      EXPECT_EQ(head.status, wanted.status);
      EXPECT_EQ(head.framing.kind, wanted.framing);
      EXPECT_EQ(head.framing.length_bytes, wanted.length_bytes);
      EXPECT_EQ(head.keep_alive, wanted.keep_alive);
    }
  }
}

TEST(ResponseHead, RoundTripKeepsEveryByte) {
  const std::string bytes =
      "HTTP/1.1 200 Fine\r\nETag: \"a\"\r\nx-amz-meta-K: \xc3\xa9\r\nETAG: \"b\"\r\nContent-Length: 0\r\n\r\n";
  ResponseHead head;
  ASSERT_EQ(parse_response_head(bytes, false, head).kind, Kind::kDone);
  EXPECT_EQ(serialise(head), bytes);
}

}  // namespace
}  // namespace nezha::http
