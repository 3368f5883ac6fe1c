// Heads of answers: what goes on the wire from the store, from upstream, and of our own.
#include "cache/request/answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nezha/http/parser.h"

namespace nezha::cache {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

StoredHeadPtr stored(const http::Fields& fields = {}) {
  http::RequestHead request;
  request.fields = fields;
  http::ResponseHead response;
  const std::string bytes =
      "HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nx-amz-checksum-sha256: s\r\nContent-MD5: m\r\nX-Repo-Commit: c\r\n"
      "Content-Length: 100\r\nAge: 5\r\nVia: 1.1 other\r\nConnection: X-Hop\r\nX-Hop: 1\r\n\r\n";
  EXPECT_EQ(http::parse_response_head(bytes, false, response).kind, http::HeadStep::Kind::kDone);
  return make_stored_head(request, {}, response, WallTime{}, WallTime{});
}

http::Fields fields_of(std::string_view name, std::string_view value) {
  http::Fields fields;
  fields.add(name, value);
  return fields;
}

const HeadOptions kOptions{"hit", false, WallTime{} + std::chrono::seconds(7)};

TEST(Answers, S3ChecksumsAreForThoseWhoAskForThem) {
  const http::Fields none, wish = fields_of("X-Amz-Checksum-Mode", "enabled");
  http::Fields range = wish;
  range.add("Range", "bytes=0-1");
  HeadOptions unasked = kOptions;
  unasked.checksums = false;
  const auto plain = stored(), asked = stored(wish);
  EXPECT_FALSE(selects(*plain, wish));
  for (const auto& fields : {none, range}) EXPECT_TRUE(selects(*plain, fields));
  for (const auto& fields : {none, range, wish}) EXPECT_TRUE(selects(*asked, fields));
  EXPECT_NE(variant_of(*plain, wish), variant_of(*plain, none));
  EXPECT_EQ(variant_of(*plain, range), variant_of(*asked, none));
  EXPECT_THAT(stored_head_text(*asked, 100, false, kOptions), HasSubstr("x-amz-checksum-sha256: s\r\n"));
  const std::string fewer = stored_head_text(*asked, 100, false, unasked);
  EXPECT_THAT(fewer, Not(HasSubstr("x-amz-checksum")));
  EXPECT_THAT(fewer, HasSubstr("ETag: \"v1\"\r\nContent-MD5: m\r\nX-Repo-Commit: c\r\n"));
  EXPECT_THAT(stored_head_text(*plain, 100, false, unasked), HasSubstr("x-amz-checksum-sha256: s\r\n"))
      << "a source that tells them unasked";
}

TEST(Answers, WholeFromTheStore) {
  const std::string text = stored_head_text(*stored(), 100, false, kOptions);
  EXPECT_THAT(text, StartsWith("HTTP/1.1 200 OK\r\nETag: \"v1\"\r\nx-amz-checksum-sha256: s\r\n"));
  for (const char* line : {"Content-Length: 100\r\n", "Age: 12\r\n", "Via: 1.1 nezha\r\n",
                           "Cache-Status: nezha; hit\r\n", "X-Repo-Commit: c\r\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  for (const char* gone : {"X-Hop", "Connection", "1.1 other", "Age: 5"}) EXPECT_THAT(text, Not(HasSubstr(gone)));
}

TEST(Answers, PartFromTheStoreHasNoChecksumOfTheWhole) {
  const std::string text = stored_partial_text(*stored(), {10, 20}, kOptions);
  EXPECT_THAT(text, HasSubstr("Content-Range: bytes 10-19/100\r\nContent-Length: 10\r\n"));
  EXPECT_THAT(text, Not(HasSubstr("checksum")));
  EXPECT_THAT(text, Not(HasSubstr("Content-MD5")));
}

TEST(Answers, UnknownLengthIsChunkedOrClosed) {
  EXPECT_THAT(stored_head_text(*stored(), std::nullopt, true, kOptions), HasSubstr("Transfer-Encoding: chunked\r\n"));
  HeadOptions closing = kOptions;
  closing.close = true;
  EXPECT_THAT(stored_head_text(*stored(), std::nullopt, false, closing), HasSubstr("Connection: close\r\n\r\n"));
}

TEST(Answers, OfOurOwnAreWholeMessages) {
  const std::string text = own_answer(421, "why", true, kOptions);
  http::ResponseHead head;
  const auto step = http::parse_response_head(text, false, head);
  ASSERT_EQ(step.kind, http::HeadStep::Kind::kDone);
  EXPECT_EQ(head.framing.length_bytes, text.size() - step.consumed_bytes);
  EXPECT_EQ(own_answer(421, "why", false, kOptions), text.substr(0, step.consumed_bytes))
      << "to HEAD: the same without body";
}

}  // namespace
}  // namespace nezha::cache
