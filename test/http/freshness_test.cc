// Which stored answers are used without asking, per mode; cases name their clause of RFC 9111.
#include <gtest/gtest.h>

#include <atomic>

#include "nezha/http/date.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

using Mode = config::Freshness::Mode;

struct FreshCase {
  std::string clause;
  std::string fields;  // of the answer
  Mode mode = Mode::kHttp;
  bool stored = true;            // a second request is answered without a new body
  int age_s = 0;                 // that much later
  bool asked = false;            // and the source was asked
  std::string request_fields{};  // of the second request
};

std::string ago(int hours) { return http::format_date(std::chrono::system_clock::now() - std::chrono::hours(hours)); }

std::vector<FreshCase> fresh_cases() {
  const std::string tag = "ETag: \"v1\"\r\n", ten = "Cache-Control: max-age=10\r\n";
  return {
      {"4.2.1 max-age, fresh", tag + ten, Mode::kHttp, true, 5, false},
      {"4.2.1 max-age, stale", tag + ten, Mode::kHttp, true, 11, true},
      {"4.2.1 s-maxage over max-age", tag + "Cache-Control: max-age=10, s-maxage=100\r\n", Mode::kHttp, true, 50,
       false},
      {"4.2.1 Expires", tag + "Date: " + ago(0) + "\r\nExpires: " + ago(-1) + "\r\n", Mode::kHttp, true, 1800, false},
      {"5.3 Expires in the past", tag + "Expires: 0\r\n", Mode::kHttp, true, 0, true},
      {"4.2.2 heuristic", tag + "Last-Modified: " + ago(100) + "\r\n", Mode::kHttp, true, 3600, false},
      {"4.2.2 heuristic used up", tag + "Last-Modified: " + ago(100) + "\r\n", Mode::kHttp, true, 40'000, true},
      {"5.1 Age counts", tag + ten + "Age: 9\r\n", Mode::kHttp, true, 5, true},
      {"5.2.2.4 no-cache", tag + "Cache-Control: no-cache, max-age=10\r\n", Mode::kHttp, true, 0, true},
      {"5.2.2.5 no-store", tag + "Cache-Control: no-store\r\n", Mode::kHttp, false, 0, true},
      {"5.2.2.7 private", tag + "Cache-Control: private, max-age=10\r\n", Mode::kHttp, false, 0, true},
      {"5.2.2.7 private with a field", tag + "Cache-Control: private=\"x\", max-age=10\r\n", Mode::kHttp, true, 0,
       false},
      {"5.2.2.4 no-cache with a field", tag + "Cache-Control: no-cache=\"x\", max-age=10\r\n", Mode::kHttp, true, 5,
       false},
      {"5.2.2.4 no-cache=\"Set-Cookie\"",
       tag + "Cache-Control: no-cache=\"set-cookie\", max-age=10\r\nSet-Cookie: a\r\n", Mode::kHttp, true, 5, false},
      {"7.3 Set-Cookie", tag + ten + "Set-Cookie: a=b\r\n", Mode::kHttp, false, 0, true},
      {"4.1 Vary: *", tag + ten + "Vary: *\r\n", Mode::kHttp, false, 0, true},
      {"3 no validator, no lifetime", "", Mode::kHttp, false, 0, true},
      {"3 lifetime without validator", ten, Mode::kHttp, true, 5, false},
      {"3 lifetime without validator, stale", ten, Mode::kHttp, false, 11, true},
      {"5.2.1.4 request no-cache", tag + ten, Mode::kHttp, true, 0, true, "Cache-Control: no-cache\r\n"},
      {"5.4 request Pragma", tag + ten, Mode::kHttp, true, 0, true, "Pragma: no-cache\r\n"},
      {"5.2.1.5 request no-store", tag + ten, Mode::kHttp, false, 0, true, "Cache-Control: no-store\r\n"},
      {"5.2.1.1 request max-age", tag + ten, Mode::kHttp, true, 5, true, "Cache-Control: max-age=3\r\n"},
      {"5.2.1.1 request max-age, young enough", tag + ten, Mode::kHttp, true, 2, false, "Cache-Control: max-age=8\r\n"},
      {"5.2.1.3 min-fresh", tag + ten, Mode::kHttp, true, 5, true, "Cache-Control: min-fresh=8\r\n"},
      {"5.2.1.2 max-stale", tag + ten, Mode::kHttp, true, 15, false, "Cache-Control: max-stale=10\r\n"},
      {"5.2.1.2 max-stale exceeded", tag + ten, Mode::kHttp, true, 25, true, "Cache-Control: max-stale=10\r\n"},
      {"5.2.2.2 must-revalidate over max-stale", tag + "Cache-Control: max-age=10, must-revalidate\r\n", Mode::kHttp,
       true, 15, true, "Cache-Control: max-stale\r\n"},
      {"revalidate: every hit asks", tag + ten, Mode::kRevalidate, true, 0, true},
      {"revalidate: no-store wins", tag + "Cache-Control: no-store\r\n", Mode::kRevalidate, false, 0, true},
      {"ttl: says nothing itself", "", Mode::kTtl, true, 99, false},
      {"ttl: over max-age=0", tag + "Cache-Control: max-age=0\r\n", Mode::kTtl, true, 99, false},
      {"ttl: over no-cache", tag + "Cache-Control: no-cache\r\n", Mode::kTtl, true, 99, false},
      {"ttl: used up", tag, Mode::kTtl, true, 101, true},
      {"ttl: private wins", tag + "Cache-Control: private\r\n", Mode::kTtl, false, 0, true},
      {"ttl: no-store wins", tag + "Cache-Control: no-store\r\n", Mode::kTtl, false, 0, true},
      {"ttl: Set-Cookie wins", tag + "Set-Cookie: a=b\r\n", Mode::kTtl, false, 0, true},
      {"immutable: never asked again", tag + "Cache-Control: max-age=0\r\n", Mode::kImmutable, true, 10'000'000, false},
      {"immutable: private wins", tag + "Cache-Control: private\r\n", Mode::kImmutable, false, 0, true},
      {"immutable: a client may ask", tag, Mode::kImmutable, true, 0, true, "Cache-Control: no-cache\r\n"},
  };
}

TEST(Freshness, Table) {
  for (const auto& c : fresh_cases()) {
    SCOPED_TRACE(c.clause);
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
      if (request.field("If-None-Match") == "\"v1\"")
        connection.send("HTTP/1.1 304 Not Modified\r\n" + c.fields + "\r\n");
      else
        connection.send(response(200, c.fields, "body"));
    });
    CacheOptions options = with_freshness(c.mode, 100);
    options.loops = 1;  // what is stored is settled before the next request is looked at
    CacheUnderTest cache(origin.port(), options);
    EXPECT_EQ(cache.ask(get("/x")).body, "body");
    if (c.stored || c.age_s > 0) {
      ASSERT_TRUE(cache.wait_stored("/x"));
    }
    cache.clock().advance_wall(std::chrono::seconds(c.age_s));
    const ClientAnswer second = cache.ask(get("/x", c.request_fields));
    EXPECT_EQ(second.status, 200) << "the cache's own 304 is not the client's";
    EXPECT_EQ(second.body, "body");
    EXPECT_EQ(origin.count(), c.asked ? 2u : 1u) << second.cache_status();
    if (c.asked) {
      EXPECT_EQ(second.cache_status().find("fwd-status=304") != std::string::npos, c.stored) << second.cache_status();
    }
  }
}

TEST(Freshness, ChangedAtTheSourceMeansNewBytes) {
  std::atomic<int> version{1};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    const std::string tag = "\"v" + std::to_string(version) + "\"";
    if (request.field("If-None-Match") == tag)
      connection.send("HTTP/1.1 304 Not Modified\r\nETag: " + tag + "\r\n\r\n");
    else
      connection.send(response(200, "ETag: " + tag + "\r\n", "body " + tag));
  });
  CacheUnderTest cache(origin.port(), with_freshness(Mode::kRevalidate));
  for (int round = 1; round <= 5; ++round) {
    version = round;
    const std::string wanted = "body \"v" + std::to_string(round) + "\"";
    EXPECT_EQ(cache.ask(get("/x")).body, wanted);
    ASSERT_TRUE(eventually([&] { return cache.ask(get("/x", "If-None-Match: \"none\"\r\n")).body == wanted; }));
    EXPECT_EQ(cache.ask(get("/x")).body, wanted);
  }
}

TEST(Freshness, A304RefreshesTheStoredFields) {  // RFC 9111 §4.3.4
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (!request.has("If-None-Match")) {
      return void(connection.send(
          response(200, "ETag: \"v1\"\r\nCache-Control: max-age=10\r\nX-A: 1\r\nContent-Type: a/b\r\n", "body")));
    }
    connection.send(
        "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nCache-Control: max-age=1000\r\nX-A: 2\r\nContent-Type: c/d\r\n"
        "Content-Length: 99\r\nSet-Cookie: a=b\r\n\r\n");
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  cache.clock().advance_wall(std::chrono::seconds(100));
  for (int i = 0; i < 2; ++i) {
    const ClientAnswer answer = cache.ask(get("/x"));
    EXPECT_EQ(answer.body, "body");
    EXPECT_EQ(answer.value("X-A"), "2");
    EXPECT_EQ(answer.value("Content-Type"), "a/b") << "of the stored bytes";
    EXPECT_FALSE(answer.has("Set-Cookie"));
    cache.clock().advance_wall(std::chrono::seconds(500));
  }
  EXPECT_EQ(origin.count(), 2u) << "fresh again for 1000 s";
}

// RFC 9111 §5.2.2.4, §5.2.2.7: fields that are one reader's are not reused; the rest is.
TEST(Freshness, WithheldFieldsReachTheirFirstReaderOnly) {
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest&) {
    connection.send(
        response(200, "Cache-Control: max-age=9, private=\"X-One, x-two\"\r\nX-One: 1\r\nX-Two: 2\r\nX: 3\r\n", "b"));
  });
  CacheUnderTest cache(origin.port());
  EXPECT_EQ(cache.ask(get("/x")).value("X-One"), "1");
  ASSERT_TRUE(cache.wait_stored("/x"));
  const ClientAnswer second = cache.ask(get("/x"));
  EXPECT_FALSE(second.has("X-One"));
  EXPECT_FALSE(second.has("X-Two"));
  EXPECT_EQ(second.value("X"), "3");
  EXPECT_EQ(origin.count(), 1u);
}

TEST(Freshness, OnlyIfCached) {  // RFC 9111 §5.2.1.7
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: max-age=10\r\n", "body"));
  });
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  EXPECT_EQ(client.ask(get("/x", "Cache-Control: only-if-cached\r\n")).status, 504);
  EXPECT_EQ(origin.count(), 0u);
  client.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_EQ(client.ask(get("/x", "Cache-Control: only-if-cached\r\n")).body, "body");
  cache.clock().advance_wall(std::chrono::seconds(11));
  EXPECT_EQ(client.ask(get("/x", "Cache-Control: only-if-cached\r\n")).status, 504);
  EXPECT_EQ(origin.count(), 1u);
}

TEST(Freshness, AgeAndTimeLeft) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: max-age=1000\r\nAge: 100\r\n", "body"));
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  cache.clock().advance_wall(std::chrono::seconds(300));
  const ClientAnswer hit = cache.ask(get("/x"));
  const int age = std::stoi(hit.value("Age"));
  EXPECT_GE(age, 400);
  EXPECT_LE(age, 500);
  EXPECT_EQ(hit.head.find("Age:"), hit.head.rfind("Age:")) << "one Age, of this answer";
  EXPECT_EQ(hit.cache_status(), "nezha; hit; ttl=" + std::to_string(1000 - age));
}

TEST(Vary, SelectsByTheNamedFields) {  // RFC 9111 §4.1
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    const std::string encoding = request.field("Accept-Encoding").value_or("none");
    connection.send(response(
        200, "Cache-Control: max-age=600\r\nETag: \"" + encoding + "\"\r\nVary: Accept-Encoding\r\n", encoding));
  });
  CacheUnderTest cache(origin.port());
  const std::vector<std::string> requests = {"", "Accept-Encoding: gzip\r\n", "Accept-Encoding: br\r\n"};
  const std::vector<std::string> wanted = {"none", "gzip", "br"};
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(cache.ask(get("/x", requests[i])).body, wanted[i]);
      ASSERT_TRUE(eventually(
          [&] { return cache.ask(get("/x", requests[i] + "Cache-Control: only-if-cached\r\n")).status == 200; }));
    }
  }
  EXPECT_EQ(origin.count(), 3u);
}

// RFC 9111 §4.1: what cannot make a difference does not.
TEST(Vary, SelectingFieldsAreNormalised) {
  struct Pair {
    std::string name, first, second;
    bool same;
  };
  const Pair pairs[] = {{"Accept-Language", "en, de", "DE,en", true},
                        {"Accept-Language", "en;q=0.5", "en; q=0.5", true},
                        {"Accept-Language", "en", "en, de", false},
                        {"Accept-Encoding", "gzip, br", "br , GZIP", true},
                        {"Accept-Encoding", "gzip", "identity", false},
                        {"X-Other", "a, b", "a,b", true},
                        {"X-Other", "a, b", "b, a", false},
                        {"X-Other", "a", "A", false}};
  for (const auto& pair : pairs) {
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
      connection.send(response(200, "Cache-Control: max-age=9\r\nVary: " + pair.name + "\r\n", "b"));
    });
    CacheUnderTest cache(origin.port());
    cache.ask(get("/x", pair.name + ": " + pair.first + "\r\n"));
    ASSERT_TRUE(eventually([&] { return cache.store().generation_count() == 1; }));
    cache.ask(get("/x", pair.name + ": " + pair.second + "\r\n"));
    EXPECT_EQ(origin.count(), pair.same ? 1u : 2u) << pair.first << " | " << pair.second;
  }
}

class ClientConditions : public testing::Test {
 protected:
  ScriptedOrigin origin_{[](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(
        200,
        "ETag: \"v1\"\r\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nCache-Control: max-age=600\r\nVary: X\r\n"
        "Content-Type: a/b\r\n",
        "body"));
  }};
  CacheUnderTest cache_{origin_.port()};
  void SetUp() override {
    cache_.ask(get("/x"));
    ASSERT_TRUE(cache_.wait_stored("/x"));
  }
  void TearDown() override { EXPECT_EQ(origin_.count(), 1u); }
};

TEST_F(ClientConditions, AreAnsweredFromTheStore) {
  RawClient client = cache_.connect();
  const ClientAnswer same = client.ask(get("/x", "If-None-Match: \"v1\"\r\n"));
  EXPECT_EQ(same.status, 304);
  for (const char* name : {"ETag", "Cache-Control", "Date", "Vary"}) EXPECT_TRUE(same.has(name)) << name;
  EXPECT_FALSE(same.has("Content-Length"));
  EXPECT_EQ(client.ask(get("/x", "If-None-Match: \"v2\"\r\n")).body, "body");
  EXPECT_EQ(client.ask(get("/x", "If-Match: \"v1\"\r\n")).body, "body");
  EXPECT_EQ(client.ask(get("/x", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n")).status, 304);
  EXPECT_EQ(client.ask(get("/x", "If-None-Match: \"v1\"\r\n", "HEAD"), true).status, 304);
  EXPECT_EQ(client.ask(get("/x", "If-Match: \"v1\"\r\nRange: bytes=1-2\r\n")).body, "od");
}

TEST(Conditions, AClientsOwnGoesToTheSourceUntouched) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.has("If-None-Match"))
      connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n");
    else
      connection.send(response(200, "ETag: \"v1\"\r\n", "body"));
  });
  CacheUnderTest cache(origin.port(), with_freshness(Mode::kRevalidate));
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  const ClientAnswer answer = cache.ask(get("/x", "If-None-Match: \"v2\"\r\n"));
  EXPECT_EQ(answer.status, 304);
  EXPECT_EQ(origin.last().count("If-None-Match"), 1u);
  EXPECT_EQ(origin.last().field("If-None-Match"), "\"v2\"");
  EXPECT_EQ(cache.ask(get("/y", "If-None-Match: \"v2\"\r\n")).status, 304);
  bool must_load = false;
  EXPECT_EQ(cache.store().find_now({"data.example/y", ""}, {}, must_load), nullptr) << "a 304 is no answer to keep";
}

}  // namespace
}  // namespace nezha::test
