// Range and Content-Range (RFC 9110 §14), with 64-bit lengths.
#include "nezha/http/range.h"

#include <gtest/gtest.h>

#include <random>

namespace nezha::http {
namespace {

constexpr uint64_t kFiveGiB = 5ull << 30;

std::optional<ByteRange> resolve(const std::string& value, uint64_t total) {
  const auto specs = parse_range(value);
  return specs && specs->size() == 1 ? specs->front().resolve(total) : std::nullopt;
}

TEST(Range, Resolves) {
  const struct {
    const char* value;
    uint64_t total;
    std::optional<ByteRange> wanted;
  } cases[] = {
      {"bytes=0-0", 10, ByteRange{0, 1}},
      {"bytes=0-", 10, ByteRange{0, 10}},
      {"bytes=2-5", 10, ByteRange{2, 6}},
      {"bytes=2-9", 10, ByteRange{2, 10}},
      {"bytes=2-100", 10, ByteRange{2, 10}},
      {"BYTES=2-5", 10, ByteRange{2, 6}},
      {"bytes= 2-5 ", 10, ByteRange{2, 6}},
      {"bytes=-3", 10, ByteRange{7, 10}},
      {"bytes=-100", 10, ByteRange{0, 10}},
      {"bytes=9-", 10, ByteRange{9, 10}},
      {"bytes=10-", 10, std::nullopt},
      {"bytes=-0", 10, std::nullopt},
      {"bytes=0-", 0, std::nullopt},
      {"bytes=-1", 0, std::nullopt},
      {"bytes=4294967295-4294967296", kFiveGiB, ByteRange{4294967295, 4294967297}},
      {"bytes=5368709119-", kFiveGiB, ByteRange{kFiveGiB - 1, kFiveGiB}},
      {"bytes=0-18446744073709551615", kFiveGiB, ByteRange{0, kFiveGiB}},
      {"bytes=18446744073709551615-", kFiveGiB, std::nullopt},
      {"bytes=-18446744073709551615", kFiveGiB, ByteRange{0, kFiveGiB}},
  };
  for (const auto& c : cases) EXPECT_EQ(resolve(c.value, c.total), c.wanted) << c.value << " of " << c.total;
}

TEST(Range, MalformedOnesAreIgnored) {
  for (const char* value : {"", "bytes", "bytes=", "bytes=,", "bytes=a-b", "bytes=5", "bytes=-", "bytes=5-4",
                            "bytes=1-2-3", "bytes=--1", "bytes=0x1-2", "bytes=+1-2", "items=0-1", "bytes=1-2;x",
                            "bytes:1-2", "bytes=18446744073709551616-", "bytes=1 - 2"}) {
    EXPECT_FALSE(parse_range(value)) << value;
  }
}

TEST(Range, SeveralMembersAreSeveral) {
  const auto specs = parse_range("bytes=0-1, 5-,-2");
  ASSERT_TRUE(specs);
  EXPECT_EQ(specs->size(), 3u);
}

TEST(Range, ResolvedRangesLieInside) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    RangeSpec spec;
    const uint64_t mask = ~uint64_t{0} >> (random() % 64);
    if (random() % 3) spec.first = random() & mask;
    if (random() % 3 || !spec.first) spec.last = spec.first.value_or(0) + (random() & mask >> 1);
    const uint64_t total = random() & (~uint64_t{0} >> (random() % 64));
    if (const auto range = spec.resolve(total)) {
      ASSERT_LT(range->begin, range->end);
      ASSERT_LE(range->end, total);
    }
  }
}

TEST(ContentRange, Parses) {
  const auto good = parse_content_range("bytes 5368709119-5368709119/5368709120");
  ASSERT_TRUE(good && good->range);
  EXPECT_EQ(*good->range, (ByteRange{kFiveGiB - 1, kFiveGiB}));
  EXPECT_EQ(good->total_bytes, kFiveGiB);
  const auto unknown = parse_content_range("bytes 0-4/*");
  ASSERT_TRUE(unknown && unknown->range);
  EXPECT_FALSE(unknown->total_bytes);
  const auto refused = parse_content_range("bytes */10");
  ASSERT_TRUE(refused);
  EXPECT_FALSE(refused->range);
  for (const char* value :
       {"", "bytes", "bytes 0-4", "bytes 4-0/10", "bytes 0-10/10", "bytes */*", "bytes -4/10", "items 0-4/10",
        "bytes 0-/10", "bytes=0-4/10", "bytes 0-18446744073709551615/*", "bytes 0-4/10/10"}) {
    EXPECT_FALSE(parse_content_range(value)) << value;
  }
}

TEST(ContentRange, RoundTrip) {
  const ByteRange range{4294967295, 4294967300};
  const auto parsed = parse_content_range(format_content_range(range, kFiveGiB));
  ASSERT_TRUE(parsed && parsed->range);
  EXPECT_EQ(*parsed->range, range);
  EXPECT_EQ(parsed->total_bytes, kFiveGiB);
}

}  // namespace
}  // namespace nezha::http
