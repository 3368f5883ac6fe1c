// Everything but GET and HEAD: relayed byte for byte, invalidating what is stored, before and after.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

using Mode = config::Freshness::Mode;
const std::string kFresh = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";
constexpr size_t kMiB = 1024 * 1024;

void echo(OriginConnection& connection, const RecordedRequest& request) {
  connection.send(response(200, "X-Method: " + request.method() + "\r\n", request.body));
}

TEST(Uploads, TravelByteForByte) {
  ScriptedOrigin origin(echo);
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  for (const std::string method : {"PUT", "POST", "PATCH", "DELETE", "BREW", "OPTIONS", "PROPFIND"}) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{65'536}, 5 * kMiB + 17}) {
      const std::string body = pattern_bytes(size, size);
      const ClientAnswer by_length =
          client.ask(get("/x?partNumber=1&uploadId=a",
                         "Content-Length: " + std::to_string(size) + "\r\nContent-MD5: x\r\n", method) +
                     body);
      EXPECT_TRUE(by_length.body == body) << method << " " << size;
      EXPECT_EQ(by_length.value("X-Method"), method);
      EXPECT_EQ(origin.last().field("Content-Length"), std::to_string(size));
      const ClientAnswer by_chunks =
          client.ask(get("/x", "Transfer-Encoding: chunked\r\n", method) + chunks(body, 100'003));
      EXPECT_TRUE(by_chunks.body == body) << method << " " << size;
      EXPECT_EQ(origin.last().field("Transfer-Encoding"), "chunked") << "chunked stays chunked";
      EXPECT_EQ(by_chunks.cache_status(), "nezha; fwd=method");
    }
  }
  EXPECT_EQ(client.ask(get("/x", "", "DELETE")).status, 200);
  EXPECT_FALSE(origin.last().has("Content-Length"));
}

TEST(Uploads, AGetWithABodyIsRelayedAndNotStored) {
  ScriptedOrigin origin(echo);
  CacheUnderTest cache(origin.port(), with_freshness(Mode::kTtl, 600));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cache.ask(get("/x", "Content-Length: 5\r\n") + "hello").body, "hello");
  EXPECT_EQ(origin.count(), 2u);
  EXPECT_EQ(cache.store().generation_count(), 0u);
}

class Expect : public testing::Test {
 protected:
  const std::string put_ = get("/x", "Content-Length: 5\r\nExpect: 100-continue\r\n", "PUT");
};

TEST_F(Expect, The100ComesFromTheSource) {
  ScriptedOrigin origin(
      [](OriginConnection& connection, const RecordedRequest& head) {
        EXPECT_EQ(head.field("Expect"), "100-continue");
        connection.send("HTTP/1.1 100 Continue\r\n\r\n");
        RecordedRequest request = head;
        connection.read_body(request);
        echo(connection, request);
      },
      false);
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  client.send(put_);
  std::string interim = client.read_bytes(25);
  EXPECT_EQ(interim, "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(client.ask("hello").body, "hello");
  EXPECT_EQ(client.ask(get("/y", "Content-Length: 2\r\nExpect: 100-continue\r\n", "PUT") + "hi").body, "hi")
      << "a client that does not wait";
}

TEST_F(Expect, AnEarlyRefusalReachesTheClientWithoutItsBody) {
  for (const std::string closing : {"", "Connection: close\r\n"}) {
    ScriptedOrigin origin(
        [&](OriginConnection& connection, const RecordedRequest&) {
          connection.send(response(403, closing, "denied"));
          if (!closing.empty()) connection.close();
        },
        false);
    CacheUnderTest cache(origin.port());
    RawClient client = cache.connect();
    const ClientAnswer answer = client.ask(put_);
    EXPECT_EQ(answer.status, 403);
    EXPECT_EQ(answer.body, "denied");
    EXPECT_TRUE(client.closed_by_peer()) << "whether the body still comes cannot be known";
  }
}

TEST_F(Expect, AServerThatNeverSaysContinueGetsTheBodyAnyway) {
  ScriptedOrigin origin(
      [](OriginConnection& connection, const RecordedRequest& head) {
        RecordedRequest request = head;
        connection.read_body(request);
        echo(connection, request);
      },
      false);
  CacheUnderTest cache(origin.port());
  EXPECT_EQ(cache.ask(put_ + "hello").body, "hello");
}

// After an early answer the source still waits for the rest of a body: what comes next on that connection is not a
// request.
TEST(EarlyAnswers, AConnectionWithHalfARequestIsNotUsedAgain) {
  std::atomic<size_t> smuggled{0};
  Event answered;
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest& head) {
        if (head.method() != "PUT") return void(connection.send(response(200, "Cache-Control: no-store\r\n", "fine")));
        std::string some;
        connection.read_some(some, 1);
        connection.send(response(507, "", "full"));
        answered.set();
        std::string rest;
        while (connection.read_some(rest, 1 << 20)) {
        }
        if (rest.find("GET ") != std::string::npos) ++smuggled;
        connection.close();
      },
      false);
  CacheOptions options;
  options.loops = 1;
  CacheUnderTest cache(origin.port(), options);
  RawClient uploader = cache.connect();
  uploader.send(get("/x", "Content-Length: 1000000\r\n", "PUT") + std::string(1000, 'b'));
  EXPECT_TRUE(answered.wait());
  uploader.send("more");
  EXPECT_EQ(uploader.read_answer().status, 507);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(cache.ask(get("/y")).body, "fine");
  EXPECT_EQ(smuggled, 0u);
}

TEST(EarlyAnswers, ReachAClientThatIsStillSending) {
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest&) {
        connection.send(response(403, "", "denied"));
        std::string rest;
        while (connection.read_some(rest, 1 << 20)) rest.clear();
        connection.close();
      },
      false);
  CacheUnderTest cache(origin.port());
  for (int i = 0; i < 20; ++i) {
    RawClient client = cache.connect();
    client.send(get("/x", "Content-Length: 100000000\r\n", "PUT"));
    const std::string block(65536, 'b');
    for (int n = 0; n < 100 && client.send(block); ++n) {
    }
    const ClientAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 403);
    EXPECT_EQ(answer.body, "denied");
  }
}

class Invalidation : public testing::TestWithParam<std::string> {};

TEST_P(Invalidation, DropsWhatIsStoredUnderThePath) {
  std::atomic<int> version{1};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.method() != "GET") {
      ++version;
      return void(connection.send(response(200, "", "")));
    }
    connection.send(response(200, "Cache-Control: max-age=600\r\n", "v" + std::to_string(version)));
  });
  CacheUnderTest cache(origin.port(), with_freshness(Mode::kImmutable));
  RawClient client = cache.connect();
  for (const std::string target : {"/x", "/x?a=b"}) {
    EXPECT_EQ(client.ask(get(target)).body, "v1");
    ASSERT_TRUE(cache.wait_stored("/x", target == "/x" ? "" : "a=b"));
  }
  EXPECT_EQ(client.ask(get("/x", "Content-Length: 0\r\n", GetParam())).status, 200);
  for (const std::string target : {"/x", "/x?a=b"}) EXPECT_EQ(client.ask(get(target)).body, "v2") << target;
}

INSTANTIATE_TEST_SUITE_P(Methods, Invalidation, testing::Values("PUT", "POST", "DELETE", "PATCH", "BREW"));

// RFC 9111 §4.4: what a successful write names in Location and Content-Location, when it is of the same authority.
TEST(Invalidation, FollowsTheNamesInTheAnswer) {
  struct Named {
    std::string field, value;
    int status = 201;
    bool dropped = true;
  };
  const Named names[] = {{"Location", "/a/y"},
                         {"Content-Location", "/a/y"},
                         {"Location", "http://data.example/a/y?v=2"},
                         {"Location", "http://DATA.example:80/a/y"},
                         {"Location", "//data.example/a/y#f"},
                         {"Location", "y"},
                         {"Location", "http://other.example/a/y", 201, false},
                         {"Location", "http://data.example:8080/a/y", 201, false},
                         {"Location", "https://data.example/a/y", 201, false},
                         {"Location", "/a/y", 403, false}};
  for (const auto& named : names) {
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
      if (request.method() == "GET")
        connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n", "body"));
      else
        connection.send(response(named.status, named.field + ": " + named.value + "\r\n", ""));
    });
    CacheUnderTest cache(origin.port());
    cache.ask(get("/a/y"));
    ASSERT_TRUE(cache.wait_stored("/a/y"));
    cache.ask(get("/a/x", "Content-Length: 0\r\n", "POST"));
    cache.ask(get("/a/y"));
    EXPECT_EQ(origin.count(), named.dropped ? 3u : 2u) << named.value;
  }
}

TEST(Invalidation, SafeMethodsAndRefusedWritesKeepTheEntry) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    connection.send(response(request.method() == "GET" || request.method() == "OPTIONS" ? 200 : 403, kFresh, "body"));
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  cache.ask(get("/x", "", "OPTIONS"));
  EXPECT_EQ(cache.ask(get("/x")).body, "body");
  EXPECT_EQ(origin.count(), 2u);
}

TEST(Invalidation, AWriteWhoseAnswerIsLostOrBadCountsAsWritten) {
  for (const bool lost : {true, false}) {
    Event read;
    std::atomic<bool> is_new{false};
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
      if (request.method() != "PUT") return void(connection.send(response(200, kFresh, is_new ? "new" : "old")));
      EXPECT_TRUE(read.wait());
      is_new = true;
      if (lost) return connection.reset();
      connection.send(response(500, "", ""));
    });
    CacheUnderTest cache(origin.port(), with_freshness(Mode::kImmutable));
    RawClient writer = cache.connect();
    writer.send(get("/x", "Content-Length: 0\r\n", "PUT"));
    ASSERT_TRUE(origin.wait_for_count(1));
    EXPECT_EQ(cache.ask(get("/x")).body, "old");
    ASSERT_TRUE(cache.wait_stored("/x"));
    read.set();
    EXPECT_EQ(writer.read_answer().status, lost ? 502 : 500);
    EXPECT_EQ(cache.ask(get("/x")).body, "new") << lost;
  }
}

TEST(Invalidation, ARacingFillDoesNotBringOldBytesBack) {
  Event written;
  std::atomic<bool> is_new{false};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.method() == "PUT") {
      is_new = true;
      return void(connection.send(response(200, "", "")));
    }
    if (is_new) return void(connection.send(response(200, kFresh, "new")));
    connection.send("HTTP/1.1 200 OK\r\n" + kFresh + "Content-Length: 3\r\n\r\no");
    EXPECT_TRUE(written.wait());
    connection.send("ld");
  });
  CacheUnderTest cache(origin.port(), with_freshness(Mode::kImmutable));
  RawClient reader = cache.connect();
  reader.send(get("/x"));
  EXPECT_EQ(reader.read_head().status, 200);
  EXPECT_EQ(reader.read_bytes(1), "o");
  EXPECT_EQ(cache.ask(get("/x", "Content-Length: 0\r\n", "PUT")).status, 200);

  // Whoever asks after the write was confirmed gets what was written, though the old body is still under way.
  RawClient after = cache.connect();
  after.send(get("/x"));
  ASSERT_TRUE(origin.wait_for_count(3)) << "joined the fill of the old bytes";
  EXPECT_EQ(after.read_answer().body, "new");
  written.set();
  EXPECT_EQ(reader.read_bytes(2), "ld") << "who asked before gets what there was";
  EXPECT_TRUE(eventually([&] { return cache.ask(get("/x")).cache_status().find("hit") != std::string::npos; }));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(cache.ask(get("/x")).body, "new");
}

}  // namespace
}  // namespace nezha::test
