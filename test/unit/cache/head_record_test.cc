// Stored heads as bytes: all that matters comes back, and any other bytes are refused or are some head, never a crash.
#include "cache/index/head_record.h"

#include <gtest/gtest.h>

#include <random>

namespace nezha::cache {
namespace {

StoredHead full_head() {
  StoredHead head;
  head.status = 301;
  head.key = {"data.example/a/%20b", "x=1&y=%2F"};
  head.fields.add("ETag", "\"v1\"");
  head.fields.add("Content-Type", "text/plain");
  head.fields.add("X-Twice", "a");
  head.fields.add("X-Twice", "b\xff");
  head.fields.add("Cache-Control", "max-age=60");
  head.total_bytes = uint64_t{5} << 30;
  head.response_time = WallTime{} + std::chrono::milliseconds(1'800'000'000'123);
  head.lifetime.explicit_ = true;
  head.lifetime.fresh_for = http::Seconds(60);
  head.lifetime.initial_age = http::Seconds(7);
  head.credentials = Credentials::kSignedUrl;
  head.selecting = {{"accept", "text/*"}, {"accept-language", ""}};
  return head;
}

void expect_equal(const StoredHead& got, const StoredHead& wanted) {
  EXPECT_EQ(got.status, wanted.status);
  EXPECT_EQ(got.key, wanted.key);
  ASSERT_EQ(got.fields.size(), wanted.fields.size());
  for (size_t i = 0; i < got.fields.size(); ++i) {
    EXPECT_EQ(got.fields[i].name, wanted.fields[i].name);
    EXPECT_EQ(got.fields[i].value, wanted.fields[i].value);
  }
  EXPECT_EQ(got.total_bytes, wanted.total_bytes);
  EXPECT_EQ(got.response_time, wanted.response_time);
  EXPECT_EQ(got.lifetime.explicit_, wanted.lifetime.explicit_);
  EXPECT_EQ(got.lifetime.heuristic, wanted.lifetime.heuristic);
  EXPECT_EQ(got.lifetime.fresh_for, wanted.lifetime.fresh_for);
  EXPECT_EQ(got.lifetime.initial_age, wanted.lifetime.initial_age);
  EXPECT_EQ(got.credentials, wanted.credentials);
  EXPECT_EQ(got.selecting, wanted.selecting);
}

TEST(HeadRecord, ComesBack) {
  StoredHead head = full_head();
  for (const bool known_length : {true, false}) {
    if (!known_length) head.total_bytes.reset();
    const auto got = decode_head(encode_head(head), 9);
    ASSERT_TRUE(got);
    expect_equal(*got.value(), head);
    EXPECT_EQ(got.value()->generation, 9u);
    // What follows from the fields is there again.
    EXPECT_TRUE(got.value()->strong());
    EXPECT_NE(got.value()->lines.find("X-Twice: a\r\n"), std::string::npos);
  }
  StoredHead empty;
  complete(empty);
  const auto got = decode_head(encode_head(empty), 1);
  ASSERT_TRUE(got);
  expect_equal(*got.value(), empty);
}

TEST(HeadRecord, EveryCutIsRefused) {
  const std::string bytes = encode_head(full_head());
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_head(bytes.substr(0, size), 1)) << size;
  EXPECT_FALSE(decode_head(bytes + '\0', 1)) << "and more than all";
}

TEST(HeadRecord, AnotherVersionIsRefused) {
  std::string bytes = encode_head(full_head());
  ++bytes[0];
  EXPECT_FALSE(decode_head(bytes, 1));
}

TEST(HeadRecord, AnyBytesAreSurvived) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const std::string good = encode_head(full_head());
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = good;
    for (uint64_t changes = 1 + random() % 4; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    const auto head = decode_head(bytes, 1);
    if (head) {
      EXPECT_LE(encode_head(*head.value()).size(), bytes.size());
    }
  }
}

}  // namespace
}  // namespace nezha::cache
