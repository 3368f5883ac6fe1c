// Stale answers: when they are served, and when never; cases name their clause.
#include <gtest/gtest.h>

#include <atomic>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

struct StaleCase {
  std::string clause;
  std::string control;   // of the stored answer
  int late_s;            // past its lifetime of 10 s
  int source;            // status of the source's second answer; 0: it closes without one
  int status;            // what the client then sees
  std::string fields{};  // of the second request
  config::Freshness::Mode mode = config::Freshness::Mode::kHttp;
};

const StaleCase kCases[] = {
    {"RFC 9111 §4.2.4 disconnected", "max-age=10", 5, 0, 200},
    {"§4.2.4 disconnected for too long", "max-age=10", 90'000, 0, 502},
    {"§4.2.4 an error is not a disconnection", "max-age=10", 5, 503, 503},
    {"§5.2.2.2 must-revalidate", "max-age=10, must-revalidate", 5, 0, 502},
    {"§5.2.2.8 proxy-revalidate", "max-age=10, proxy-revalidate", 5, 0, 502},
    {"§5.2.2.10 s-maxage", "s-maxage=10", 5, 0, 502},
    {"§5.2.2.4 no-cache", "max-age=10, no-cache", 5, 0, 502},
    {"§5.2.1.4 the client's no-cache", "max-age=10", 5, 0, 502, "Cache-Control: no-cache\r\n"},
    {"§5.2.1.1 the client's max-age", "max-age=10", 5, 0, 502, "Cache-Control: max-age=0\r\n"},
    {"RFC 5861 §4 stale-if-error", "max-age=10, stale-if-error=60", 5, 503, 200},
    {"RFC 5861 §4 stale-if-error, no answer", "max-age=10, stale-if-error=60", 5, 0, 200},
    {"RFC 5861 §4 its window is over", "max-age=10, stale-if-error=60", 65, 503, 503},
    {"RFC 5861 §4 its window is over, no answer", "max-age=10, stale-if-error=60", 65, 0, 502},
    {"RFC 5861 §4 not for what is no failure", "max-age=10, stale-if-error=60", 5, 404, 404},
    {"RFC 5861 §4 501 is an answer", "max-age=10, stale-if-error=60", 5, 501, 501},
    {"RFC 5861 §4 of the client", "max-age=10", 5, 500, 200, "Cache-Control: stale-if-error=60\r\n"},
    {"RFC 5861 §4 must-revalidate wins", "max-age=10, stale-if-error=60, must-revalidate", 5, 503, 503},
    {"revalidate shows nothing old", "max-age=10", 5, 0, 502, "", config::Freshness::Mode::kRevalidate},
};

TEST(Stale, Table) {
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.clause);
    std::atomic<bool> broken{false};
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
      if (!broken)
        return void(connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: " + c.control + "\r\n", "old")));
      if (c.source == 0) return connection.close();
      connection.send(response(c.source, "", "new"));
    });
    CacheUnderTest cache(origin.port(), with_freshness(c.mode));
    EXPECT_EQ(cache.ask(get("/x")).body, "old");
    ASSERT_TRUE(cache.wait_stored("/x"));
    broken = true;
    cache.clock().advance_wall(std::chrono::seconds(10 + c.late_s));
    const ClientAnswer answer = cache.ask(get("/x", c.fields));
    EXPECT_EQ(answer.status, c.status);
    EXPECT_EQ(answer.body == "old", c.status == 200) << answer.body;
    EXPECT_EQ(cache.metric("nezha_cache_requests_total{result=\"stale\"}"), c.status == 200 ? 1 : 0);
  }
}

// RFC 5861 §3: served at once, checked behind the client's back, and only once at a time.
TEST(StaleWhileRevalidate, IsServedAndCheckedOnce) {
  Event asked_again, go_on;
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (!request.has("If-None-Match"))
      return void(connection.send(
          response(200, "ETag: \"v1\"\r\nCache-Control: max-age=10, stale-while-revalidate=60\r\n", "body")));
    asked_again.set();
    go_on.wait();
    connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=1000\r\n\r\n");
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  cache.clock().advance_wall(std::chrono::seconds(15));
  for (int i = 0; i < 5; ++i) {
    const ClientAnswer answer = cache.ask(get("/x", i == 0 ? "If-None-Match: \"v0\"\r\n" : ""));
    EXPECT_EQ(answer.body, "body");
    EXPECT_EQ(answer.cache_status(), "nezha; hit; ttl=-5");
  }
  asked_again.wait();
  EXPECT_EQ(origin.count(), 2u) << "one check at a time";
  EXPECT_EQ(origin.last().field("If-None-Match"), "\"v1\"") << "our condition, not the client's";
  go_on.set();
  EXPECT_TRUE(eventually([&] { return cache.ask(get("/x")).cache_status() == "nezha; hit; ttl=1000"; }));
  EXPECT_EQ(origin.count(), 2u);
  EXPECT_EQ(cache.metric("nezha_cache_background_checks_total"), 1);
}

TEST(StaleWhileRevalidate, ANewVersionIsStoredAndAGoneOneForgotten) {
  for (const bool gone : {false, true}) {
    std::atomic<bool> changed{false};
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
      const std::string fields = "Cache-Control: max-age=10, stale-while-revalidate=60\r\nETag: ";
      if (changed && gone)
        connection.send(response(403, "", "gone"));
      else
        connection.send(response(200, fields + (changed ? "\"v2\"\r\n" : "\"v1\"\r\n"), changed ? "new" : "old"));
    });
    CacheUnderTest cache(origin.port());
    cache.ask(get("/x"));
    ASSERT_TRUE(cache.wait_stored("/x"));
    cache.clock().advance_wall(std::chrono::seconds(15));
    changed = true;
    EXPECT_EQ(cache.ask(get("/x")).body, "old");
    EXPECT_TRUE(eventually([&] { return cache.ask(get("/x")).body == (gone ? "gone" : "new"); })) << gone;
  }
}

TEST(StaleWhileRevalidate, IsNoneBehindItsWindowNorForCredentials) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.has("If-None-Match")) return void(connection.send("HTTP/1.1 304 Not Modified\r\n\r\n"));
    connection.send(
        response(200, "ETag: \"v1\"\r\nCache-Control: public, max-age=10, stale-while-revalidate=60\r\n", "body"));
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  cache.clock().advance_wall(std::chrono::seconds(15));
  EXPECT_EQ(cache.ask(get("/x", "Authorization: a\r\n")).cache_status(), "nezha; fwd=stale; fwd-status=304")
      << "its own request speaks for it";
  cache.clock().advance_wall(std::chrono::seconds(71));
  EXPECT_EQ(cache.ask(get("/x")).cache_status(), "nezha; fwd=stale; fwd-status=304");
}

}  // namespace
}  // namespace nezha::test
