// HEAD: answered from a stored GET, and what a HEAD says about one (RFC 9110 §9.3.2, RFC 9111 §4.3.5).
#include <gtest/gtest.h>

#include <atomic>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

const std::string kTag = "ETag: \"v1\"\r\n", kTen = "Cache-Control: max-age=10\r\n";

TEST(Head, IsAnsweredFromAStoredGetAsTheGetWouldBe) {
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, kTag + kTen + "X-Repo-Commit: c\r\n", "body"));
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  const ClientAnswer by_get = cache.ask(get("/x"));
  for (const char* range : {"", "Range: bytes=1-2\r\n"}) {
    const ClientAnswer by_head = cache.ask(get("/x", range, "HEAD"), true);
    EXPECT_EQ(by_head.head, by_get.head) << "RFC 9110 §14.2: HEAD has no ranges";
    EXPECT_EQ(by_head.body, "");
  }
  EXPECT_EQ(cache.ask(get("/x", "If-None-Match: \"v1\"\r\n", "HEAD"), true).status, 304);
  EXPECT_EQ(origin.count(), 1u);
}

struct HeadCase {
  std::string clause;
  std::string stored;  // fields of the stored GET
  std::string head;    // fields of the later answer to HEAD
  std::string next;    // Cache-Status of a GET behind it
};

const HeadCase kCases[] = {
    {"§4.3.5 nothing differs", kTen, "Content-Length: 4\r\nCache-Control: max-age=50\r\n", "nezha; hit; ttl=50"},
    {"§4.3.5 the same validators", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n" + kTen,
     "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 4\r\nCache-Control: max-age=50\r\n",
     "nezha; hit; ttl=50"},
    {"§4.3.5 another length", kTen, "Content-Length: 5\r\nCache-Control: max-age=50\r\n",
     "nezha; fwd=uri-miss; stored"},
    {"§4.3.5 another tag", kTen, "ETag: \"v2\"\r\nContent-Length: 4\r\n", "nezha; fwd=uri-miss; stored"},
    {"§4.3.5 now forbidden to store", kTen, "Content-Length: 4\r\nCache-Control: no-store\r\n",
     "nezha; fwd=uri-miss; stored"},
};

TEST(Head, UpdatesOrInvalidatesAStoredGet) {
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.clause);
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
      if (request.method() == "HEAD")
        connection.send("HTTP/1.1 200 OK\r\nX-New: 1\r\n" + c.head + "\r\n");
      else
        connection.send(response(200, c.stored, "body"));
    });
    CacheUnderTest cache(origin.port());
    cache.ask(get("/x"));
    ASSERT_TRUE(cache.wait_stored("/x"));
    cache.clock().advance_wall(std::chrono::seconds(11));
    const ClientAnswer head = cache.ask(get("/x", "If-None-Match: \"z\"\r\n", "HEAD"), true);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.cache_status(), "nezha; fwd=stale; fwd-status=200; detail=head");
    const ClientAnswer next = cache.ask(get("/x"));
    EXPECT_EQ(next.body, "body");
    EXPECT_EQ(next.cache_status(), c.next);
    EXPECT_EQ(next.has("X-New"), c.next.find("hit") != std::string::npos);
  }
}

// One date may name what two users see: another's HEAD says nothing of a private answer.
TEST(Head, OfAnotherReaderLeavesAPrivateAnswerAlone) {
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest& request) {
    if (request.method() == "HEAD")
      connection.send("HTTP/1.1 200 OK\r\nETag: \"other\"\r\nContent-Length: 4\r\n\r\n");
    else if (request.has("If-None-Match"))
      connection.send("HTTP/1.1 304 Not Modified\r\n\r\n");
    else
      connection.send(response(200, kTag, "body"));
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x", "Authorization: a\r\n"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  cache.ask(get("/x", "Authorization: b\r\nIf-None-Match: \"z\"\r\n", "HEAD"), true);
  EXPECT_EQ(cache.ask(get("/x", "Authorization: a\r\n")).cache_status(), "nezha; fwd=stale; fwd-status=304");
}

}  // namespace
}  // namespace nezha::test
