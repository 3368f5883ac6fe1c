// The chunked coding (RFC 9112 §7.1): raw bytes on one side, the body or the refusal on the other, at every fragment
// size.
#include <gtest/gtest.h>

#include "nezha/base/limits.h"
#include "nezha/http/parser.h"
#include "test/support/request_cases.h"

namespace nezha::http {
namespace {

using Kind = ChunkedDecoder::Step::Kind;
using namespace std::string_literals;

struct Decoded {
  enum class End { kEnd, kBad, kOpen } end = End::kOpen;
  std::string body;
  size_t consumed_bytes = 0;
};

// Offers the bytes as a connection does: what was not consumed comes again with more behind it.
Decoded decode(std::string_view bytes, size_t fragment_bytes, size_t data_bytes_max = SIZE_MAX) {
  ChunkedDecoder decoder;
  Decoded out;
  size_t have = 0;
  for (;;) {
    const auto step = decoder.decode(bytes.substr(out.consumed_bytes, have - out.consumed_bytes), data_bytes_max);
    out.consumed_bytes += step.consumed_bytes;
    if (step.kind == Kind::kData) out.body += step.data;
    if (step.kind == Kind::kBad) out.end = Decoded::End::kBad;
    if (step.kind == Kind::kEnd) out.end = Decoded::End::kEnd;
    if (out.end != Decoded::End::kOpen) return out;
    if (step.kind == Kind::kData || step.consumed_bytes > 0) continue;
    if (have == bytes.size()) return out;
    have = std::min(have + fragment_bytes, bytes.size());
  }
}

struct ChunkedCase {
  std::string bytes;
  bool good;
  std::string body;
};

std::vector<ChunkedCase> chunked_cases() {
  const std::string line(limits::kChunkLineBytesMax, 'x');
  return {
      {"0\r\n\r\n", true, ""},
      {"5\r\nhello\r\n0\r\n\r\n", true, "hello"},
      {"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n", true, "abc"},
      {"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", true, "01234567890123456789"},
      {"00005\r\nhello\r\n000\r\n\r\n", true, "hello"},
      {"5;name=value;other=\"a b\"\r\nhello\r\n0;last\r\n\r\n", true, "hello"},
      {"5 ; name\r\nhello\r\n0\r\n\r\n", true, "hello"},
      {"2\r\n\r\n\r\n0\r\n\r\n", true, "\r\n"},
      {"0\r\nTrailer: value\r\nOther: x\r\n\r\n", true, ""},
      {"5\nhello\r\n0\r\n\r\n", false, ""},
      {"5\r\nhello\n0\r\n\r\n", false, "hello"},
      {"5\r\nhelloX\r\n0\r\n\r\n", false, "hello"},
      {"5\r\nhello0\r\n\r\n", false, "hello"},
      {"5;a\nb\r\nhello\r\n0\r\n\r\n", false, ""},
      {"5;a\rb\r\nhello\r\n0\r\n\r\n", false, ""},
      {"5;a\0b\r\nhello\r\n0\r\n\r\n"s, false, ""},
      {"5 \r\nhello\r\n0\r\n\r\n", false, ""},
      {" 5\r\nhello\r\n0\r\n\r\n", false, ""},
      {"\r\nhello", false, ""},
      {"-1\r\nhello", false, ""},
      {"+5\r\nhello", false, ""},
      {"0x5\r\nhello", false, ""},
      {"5g\r\nhello", false, ""},
      {";a\r\nhello", false, ""},
      {"FFFFFFFFFFFFFFFF\r\nhello", false, ""},
      {"10000000000000000\r\nhello", false, ""},
      {"100000000000000000000005\r\nhello", false, ""},
      {"5;" + line + "\r\nhello\r\n0\r\n\r\n", false, ""},
      {"0\r\nTrailer: a\nb\r\n\r\n", false, ""},
      {"0\r\n" + std::string(limits::kHeadBytesMax + 1, 'x') + "\r\n\r\n", false, ""},
  };
}

TEST(Chunked, TableAtEveryFragmentSize) {
  for (const auto& wanted : chunked_cases()) {
    for (const size_t size : test::fragment_sizes(wanted.bytes.size())) {
      const Decoded got = decode(wanted.bytes, size);
      EXPECT_EQ(got.end, wanted.good ? Decoded::End::kEnd : Decoded::End::kBad) << wanted.bytes << " by " << size;
      EXPECT_EQ(got.body, wanted.body) << wanted.bytes << " by " << size;
      EXPECT_TRUE(!wanted.good || got.consumed_bytes == wanted.bytes.size()) << wanted.bytes;
      if (HasFailure()) break;
    }
  }
}

TEST(Chunked, NothingBehindTheEndIsConsumed) {
  const Decoded got = decode("5\r\nhello\r\n0\r\n\r\nGET / HTTP/1.1\r\n", 1000);
  EXPECT_EQ(got.end, Decoded::End::kEnd);
  EXPECT_EQ(got.consumed_bytes, 15u);
}

TEST(Chunked, NoPrefixIsAnEnd) {
  const std::string bytes = "5\r\nhello\r\n3;x\r\nabc\r\n0\r\nT: v\r\n\r\n";
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decode(bytes.substr(0, size), 1000).end, Decoded::End::kOpen) << size;
  }
}

TEST(Chunked, DataIsShownInPiecesOfTheWantedSize) {
  const Decoded got = decode("a\r\n0123456789\r\n0\r\n\r\n", 1000, 3);
  EXPECT_EQ(got.body, "0123456789");
}

TEST(Chunked, ALongRunOfTinyTrailersIsRefused) {
  std::string bytes = "0\r\n";
  while (bytes.size() < limits::kHeadBytesMax + 1000) bytes += "a: b\r\n";
  EXPECT_EQ(decode(bytes + "\r\n", 1000).end, Decoded::End::kBad);
}

}  // namespace
}  // namespace nezha::http
