// The end of a server: idle connections close, answers under way finish, stuck ones are cut at the deadline; and
// nothing leaks from requests that were broken off.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

constexpr size_t kMiB = 1024 * 1024;
const std::string kFresh = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";

SteadyTime in(std::chrono::seconds time) { return std::chrono::steady_clock::now() + time; }

TEST(Drain, IdleConnectionsCloseAndAnswersUnderWayFinish) {
  Event draining;
  const std::string body = pattern_bytes(2 * kMiB, 1);
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.target() == "/idle") return void(connection.send(response(200, kFresh, "x")));
    const std::string answer = response(200, kFresh, body);
    connection.send(std::string_view(answer).substr(0, kMiB));
    draining.wait();
    connection.send(std::string_view(answer).substr(kMiB));
  });
  CacheUnderTest cache(origin.port());
  RawClient idle = cache.connect(), unused = cache.connect(), busy = cache.connect();
  EXPECT_EQ(idle.ask(get("/idle")).body, "x");
  busy.send(get("/busy"));
  EXPECT_EQ(busy.read_head().status, 200);
  auto drained = std::async(std::launch::async, [&] { return cache.drain(in(kWatchdog)); });
  EXPECT_TRUE(idle.closed_by_peer());
  EXPECT_TRUE(unused.closed_by_peer());
  draining.set();
  EXPECT_TRUE(busy.read_bytes(body.size()) == body);
  EXPECT_TRUE(busy.closed_by_peer());
  EXPECT_TRUE(drained.get());
  EXPECT_EQ(cache.connections(), 0u);
}

TEST(Drain, AStuckClientIsCutAtTheDeadline) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "Cache-Control: no-store\r\n", pattern_bytes(30 * kMiB, 2)));
  });
  CacheUnderTest cache(origin.port());
  RawClient stuck = cache.connect(4096);
  stuck.send(get("/x"));
  EXPECT_EQ(stuck.read_head().status, 200);
  EXPECT_FALSE(cache.drain(in(std::chrono::seconds(0))));
  EXPECT_EQ(cache.connections(), 0u);
  EXPECT_LT(stuck.read_bytes(30 * kMiB).size(), 30 * kMiB);
}

TEST(Drain, AStuckUpstreamIsCutAtTheDeadline) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    std::string ignored;
    connection.read_some(ignored, 1);
  });
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  client.send(get("/x"));
  ASSERT_TRUE(origin.wait_for_count(1));
  EXPECT_FALSE(cache.drain(in(std::chrono::seconds(0))));
  EXPECT_EQ(cache.connections(), 0u);
}

TEST(Drain, NewConnectionsAreNotAccepted) {
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kFresh, "x")); });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  EXPECT_TRUE(cache.drain(in(kWatchdog)));
}

// A server that is destroyed without a drain ends all by itself.
TEST(TearDown, WithEverythingUnderWay) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.target() == "/silent") {
      std::string ignored;
      return void(connection.read_some(ignored, 1));
    }
    connection.send("HTTP/1.1 200 OK\r\n" + kFresh + "Content-Length: 1000\r\n\r\nbeginning");
    std::string ignored;
    connection.read_some(ignored, 1);
  });
  std::vector<RawClient> clients;
  {
    CacheUnderTest cache(origin.port());
    for (const char* target : {"/silent", "/a", "/a", "/b"}) {
      clients.push_back(cache.connect());
      clients.back().send(get(target));
    }
    ASSERT_TRUE(origin.wait_for_count(3));
  }
  for (auto& client : clients) EXPECT_FALSE(client.read_answer().complete());
}

// A session of one loop waits for a fill of another: neither can end without the other one's loop.
TEST(TearDown, WithReadersOfAnotherLoopsFill) {
  for (int round = 0; round < 5; ++round) {
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
      connection.send("HTTP/1.1 200 OK\r\n" + kFresh + "Content-Length: 1000\r\n\r\nbeginning");
      std::string ignored;
      connection.read_some(ignored, 1);
    });
    CacheOptions options;
    options.loops = 4;
    std::vector<RawClient> clients;
    CacheUnderTest cache(origin.port(), options);
    for (int i = 0; i < 12; ++i) {
      clients.push_back(cache.connect());
      clients.back().send(get("/x"));
      EXPECT_EQ(clients.back().read_head().status, 200);
    }
    EXPECT_EQ(origin.count(), 1u);
  }
}

TEST(Leaks, AThousandAbortedRequestsLeaveNothing) {
  const std::string body = pattern_bytes(300'000, 3);
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    const std::string fields = request.target().ends_with("s") ? kFresh : "Cache-Control: no-store\r\n";
    connection.send(response(200, fields, body));
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/warm"));
  const size_t before = open_descriptors();
  for (int i = 0; i < 1000; ++i) {
    RawClient client = cache.connect(4096);
    const std::string request = get("/" + std::to_string(i % 50) + (i % 2 ? "s" : ""));
    switch (i % 5) {
      case 0:
        client.send(request.substr(0, request.size() / 2));
        break;
      case 1:
        client.send(request);
        break;
      case 2:
        client.send(request), client.read_head();
        break;
      case 3:
        client.send(request), client.read_head(), client.read_bytes(10'000);
        break;
      case 4:
        client.send(get("/x", "Content-Length: 1000\r\n", "PUT") + "some");
        break;
    }
    if (i % 3 == 0) client.socket().reset();
  }
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0; })) << cache.connections();
  origin.drop_connections();
  // Pooled upstream connections may stay, two descriptors each (both ends are in this process).
  EXPECT_TRUE(eventually([&] { return open_descriptors() <= before + 64; })) << before << " -> " << open_descriptors();
  EXPECT_TRUE(cache.drain(in(kWatchdog))) << "no coroutine is left";
}

}  // namespace
}  // namespace nezha::test
