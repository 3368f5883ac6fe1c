// Request heads: raw bytes on one side, the parsed value or the refusal on the other, at every fragment size.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nezha/base/limits.h"
#include "nezha/http/parser.h"
#include "test/support/request_cases.h"

namespace nezha::http {
namespace {

using Kind = HeadStep::Kind;

// Offers the bytes as a connection would: a little more each time, from the start.
HeadStep parse_in_fragments(std::string_view bytes, size_t fragment_bytes, RequestHead& into) {
  for (size_t have = 0; have < bytes.size();) {
    have = std::min(have + fragment_bytes, bytes.size());
    const HeadStep step = parse_request_head(bytes.substr(0, have), into);
    if (step.kind != Kind::kNeedMore) return step;
  }
  return {};
}

void expect_case(const test::RequestCase& wanted, const HeadStep& step, const RequestHead& head,
                 size_t fragment_bytes) {
  SCOPED_TRACE(wanted.name + ", fragments of " + std::to_string(fragment_bytes));
  if (wanted.status != 0) {
    ASSERT_EQ(step.kind, Kind::kBad);
    EXPECT_EQ(step.status, wanted.status) << step.reason;
    EXPECT_FALSE(step.reason.empty());
    return;
  }
  ASSERT_EQ(step.kind, Kind::kDone) << step.reason;
  EXPECT_EQ(step.consumed_bytes, wanted.bytes.size());
  EXPECT_EQ(head.method, wanted.method);
  EXPECT_EQ(head.target, wanted.target);
  EXPECT_EQ(head.keep_alive, wanted.keep_alive);
  EXPECT_EQ(head.framing.kind, wanted.framing.kind);
  EXPECT_EQ(head.framing.length_bytes, wanted.framing.length_bytes);
}

TEST(RequestHead, TableAtEveryFragmentSize) {
  RequestHead head;
  for (const auto& wanted : test::request_cases()) {
    for (const size_t size : test::fragment_sizes(wanted.bytes.size())) {
      const HeadStep step = parse_in_fragments(wanted.bytes, size, head);
      expect_case(wanted, step, head, size);
      if (HasFailure()) break;
    }
  }
}

TEST(RequestHead, BytesBehindTheHeadAreLeftAlone) {
  RequestHead head;
  for (const auto& wanted : test::request_cases()) {
    if (wanted.status != 0) continue;
    const HeadStep step = parse_request_head(wanted.bytes + "GET /next HTTP/1.1\r\n", head);
    ASSERT_EQ(step.kind, Kind::kDone) << wanted.name << ": " << step.reason;
    EXPECT_EQ(step.consumed_bytes, wanted.bytes.size()) << wanted.name;
  }
}

TEST(RequestHead, EveryPrefixOfAGoodHeadNeedsMore) {
  RequestHead head;
  for (const auto& wanted : test::request_cases()) {
    if (wanted.status != 0) continue;
    for (size_t size = 1; size < wanted.bytes.size(); ++size) {
      EXPECT_EQ(parse_request_head(std::string_view(wanted.bytes).substr(0, size), head).kind, Kind::kNeedMore)
          << wanted.name << " at " << size;
    }
  }
}

TEST(RequestHead, FieldsKeepTheirBytesAndOrder) {
  RequestHead head;
  const std::string bytes = "GET /x HTTP/1.1\r\nHost: A.example\r\nx-b:  1 \r\nX-A: \xff\xfe\r\nX-B: 2\r\n\r\n";
  ASSERT_EQ(parse_request_head(bytes, head).kind, Kind::kDone);
  ASSERT_EQ(head.fields.size(), 4u);
  EXPECT_EQ(head.fields[0].value, "A.example");
  EXPECT_EQ(head.fields[1].name, "x-b");
  EXPECT_EQ(head.fields[1].value, "1");
  EXPECT_EQ(head.fields[2].value, "\xff\xfe");
  EXPECT_EQ(head.fields.joined("X-B"), "1, 2");
}

TEST(RequestHead, EqualContentLengthsBecomeOne) {
  for (const std::string fields :
       {"Content-Length: 5, 5\r\n", "Content-Length: 5\r\nContent-Length: 5\r\n", "Content-Length: 005\r\n"}) {
    RequestHead head;
    const HeadStep step = parse_request_head("PUT /x HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n", head);
    if (step.kind == Kind::kBad) continue;  // refusing them is as good
    ASSERT_EQ(step.kind, Kind::kDone);
    EXPECT_EQ(head.framing.length_bytes, 5u);
    EXPECT_EQ(head.fields.joined("Content-Length"), "5") << "another reader may take the list for something else";
  }
}

TEST(RequestHead, AHeadOfExactlyTheLimitIsAccepted) {
  const std::string start = "GET /x HTTP/1.1\r\nHost: a\r\nX: ", end = "\r\n\r\n";
  const std::string bytes = start + std::string(limits::kHeadBytesMax - start.size() - end.size(), 'a') + end;
  RequestHead head;
  EXPECT_EQ(parse_request_head(bytes, head).kind, Kind::kDone);
}

TEST(RequestHead, ReusedValueHoldsNothingOfTheLastRequest) {
  RequestHead head;
  ASSERT_EQ(
      parse_request_head("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nX: 1\r\nConnection: close\r\n\r\n", head)
          .kind,
      Kind::kDone);
  ASSERT_EQ(parse_request_head("GET /b HTTP/1.1\r\nHost: b\r\n\r\n", head).kind, Kind::kDone);
  EXPECT_EQ(head.framing.kind, Framing::Kind::kNone);
  EXPECT_TRUE(head.keep_alive);
  EXPECT_EQ(head.fields.size(), 1u);
}

}  // namespace
}  // namespace nezha::http
