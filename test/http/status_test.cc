// Which statuses are kept, and for whom (RFC 9111 §3, §4.2.2; RFC 9110 §15).
#include <gtest/gtest.h>

#include "nezha/http/date.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

using Mode = config::Freshness::Mode;

struct StatusCase {
  std::string clause;
  int status;
  std::string fields;
  bool stored;
  std::string request{};
  Mode mode = Mode::kHttp;
  config::Protocol protocol = config::Protocol::kHttp;
};

std::string guess() {  // Last-Modified alone: a heuristic lifetime where one is allowed
  return "Last-Modified: " + http::format_date(std::chrono::system_clock::now() - std::chrono::hours(100)) + "\r\n";
}

std::vector<StatusCase> status_cases() {
  const std::string ten = "Cache-Control: max-age=10\r\n";
  std::vector<StatusCase> cases;
  for (const int status : {200, 203, 204, 299, 301, 302, 303, 307, 308, 400, 403, 404, 410, 500, 502, 503, 504, 599})
    cases.push_back({"§3 a stated lifetime", status, ten, true});
  for (const int status : {200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501})
    cases.push_back({"§4.2.2 heuristic", status, guess(), true});
  for (const int status : {201, 202, 302, 303, 307, 400, 403, 500, 502, 503, 504, 599})
    cases.push_back({"§4.2.2 no heuristic", status, guess(), false});
  cases.push_back({"§5.2.2.9 public allows a heuristic", 599, guess() + "Cache-Control: public\r\n", true});
  cases.push_back({"§5.2.2.3 understood", 200, "Cache-Control: max-age=10, no-store, must-understand\r\n", true});
  cases.push_back({"§5.2.2.3 not understood", 599, "Cache-Control: max-age=10, must-understand\r\n", false});
  cases.push_back({"404 of a signed-in client", 404, ten, false, "Authorization: a\r\n"});
  cases.push_back({"404 of a conditional request", 404, ten, false, "If-Match: \"a\"\r\n"});
  cases.push_back({"404 of a range", 404, ten, false, "Range: bytes=0-1\r\n"});
  cases.push_back({"404 under ttl", 404, ten, false, "", Mode::kTtl});
  cases.push_back({"404 of S3", 404, ten, false, "", Mode::kHttp, config::Protocol::kS3});
  cases.push_back(
      {"a redirect with a signature in it", 307, ten + "Location: http://h/x?X-Amz-Signature=1\r\n", false});
  cases.push_back({"a redirect without one", 307, ten + "Location: http://h/x?y=1\r\n", true});
  return cases;
}

TEST(Status, Table) {
  for (const auto& c : status_cases()) {
    SCOPED_TRACE(c.clause + " " + std::to_string(c.status));
    const std::string body = c.status == 204 ? "" : "body";
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
      if (c.status == 204)
        connection.send("HTTP/1.1 204 No Content\r\n" + c.fields + "\r\n");
      else
        connection.send(response(c.status, c.fields, body));
    });
    CacheOptions options = with_freshness(c.mode, 100);
    options.protocol = c.protocol;
    options.loops = 1;
    CacheUnderTest cache(origin.port(), options);
    EXPECT_EQ(cache.ask(get("/x", c.request)).status, c.status);
    if (c.stored) {
      ASSERT_TRUE(cache.wait_stored("/x"));
    }
    const ClientAnswer second = cache.ask(get("/x", c.request));
    EXPECT_EQ(second.status, c.status);
    EXPECT_EQ(second.body, body);
    EXPECT_TRUE(second.complete());
    EXPECT_EQ(second.has("Content-Length"), c.status != 204) << "RFC 9110 §8.6";
    EXPECT_EQ(origin.count(), c.stored ? 1u : 2u) << second.cache_status();
  }
}

// What everybody is refused may be answered otherwise to who proves who they are.
TEST(Status, AStoredRefusalIsNotForCredentials) {
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest& request) {
    const bool known = request.has("Authorization");
    connection.send(response(known ? 200 : 403, "Cache-Control: max-age=60\r\n", known ? "yes" : "no"));
  });
  CacheUnderTest cache(origin.port());
  EXPECT_EQ(cache.ask(get("/x")).body, "no");
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_EQ(cache.ask(get("/x", "Authorization: a\r\n")).body, "yes");
}

// RFC 9110 §13.2.1, §14.2: conditions and ranges are about representations.
TEST(Status, AStoredRedirectKnowsNoConditionsAndRanges) {
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(301, "Cache-Control: max-age=60\r\nETag: \"v1\"\r\nLocation: /y\r\n", "moved"));
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  for (const char* fields : {"If-None-Match: \"v1\"\r\n", "If-Match: \"v2\"\r\n", "Range: bytes=0-1\r\n"}) {
    const ClientAnswer answer = cache.ask(get("/x", fields));
    EXPECT_EQ(answer.status, 301) << fields;
    EXPECT_EQ(answer.value("Location"), "/y");
    EXPECT_EQ(answer.body, "moved");
  }
  EXPECT_EQ(origin.count(), 1u);
}

}  // namespace
}  // namespace nezha::test
