// What the cache answers itself: unknown hosts, loops, dead and silent upstreams. Timeouts come by a moved clock.
#include <gtest/gtest.h>

#include <atomic>

#include "nezha/base/limits.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

const std::string kNoStore = "Cache-Control: no-store\r\n";

TEST(Refusals, HostsThatAreNotConfigured) {
  ScriptedOrigin origin(
      [](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kNoStore, "x")); });
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  for (const std::string host :
       {"evil.example", "data.example.evil.example", "xdata.example", "127.0.0.1", "[::1]", "localhost"}) {
    const ClientAnswer answer = client.ask("GET /x HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    EXPECT_EQ(answer.status, 421) << host;
    EXPECT_NE(answer.body.find("upstreams[].hosts"), std::string::npos);
  }
  for (const std::string host :
       {"", ":80", "data.example:x", "data.example:0", "data.example:65536", "[::1", "a b", "user@data.example"}) {
    const ClientAnswer answer = cache.ask("GET /x HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    EXPECT_GE(answer.status, 400) << host;
    EXPECT_LT(answer.status, 500) << host;
  }
  EXPECT_EQ(client.ask(get("/x")).status, 200) << "a 421 does not end the connection";
  EXPECT_EQ(origin.count(), 1u);
}

TEST(Refusals, ALoop) {
  ScriptedOrigin origin(
      [](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kNoStore, "x")); });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  const std::string mark = origin.last().field("CDN-Loop").value_or("");
  ASSERT_FALSE(mark.empty());
  EXPECT_EQ(cache.ask(get("/x", "CDN-Loop: " + mark + "\r\n")).status, 508);
  EXPECT_EQ(cache.ask(get("/x", "CDN-Loop: other, " + mark + ";v=1\r\n", "PUT")).status, 508);
  EXPECT_EQ(cache.ask(get("/x", "CDN-Loop: other\r\nCDN-Loop: " + mark + "\r\n")).status, 508);
  std::string many = "CDN-Loop: nezha-a";
  for (int i = 0; i < 8; ++i) many += ", nezha-" + std::to_string(i);
  EXPECT_EQ(cache.ask(get("/x", many + "\r\n")).status, 508) << "a ring of several caches";
  EXPECT_EQ(cache.ask(get("/x", "CDN-Loop: other\r\n")).status, 200);
  EXPECT_EQ(origin.last().count("CDN-Loop"), 2u);
}

TEST(DeadUpstream, IsABadGatewayAndTheConnectionGoesOn) {
  CacheUnderTest cache(dead_port());
  RawClient client = cache.connect();
  for (const std::string method : {"GET", "HEAD", "DELETE"}) {
    const ClientAnswer answer = client.ask(get("/x", "", method), method == "HEAD");
    EXPECT_EQ(answer.status, 502) << method;
    EXPECT_TRUE(answer.complete());
  }
}

TEST(DeadUpstream, ItsFreshEntriesAreServed) {
  auto origin = std::make_unique<ScriptedOrigin>([](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: max-age=600, must-revalidate\r\n", "body"));
  });
  CacheUnderTest cache(origin->port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  origin.reset();
  EXPECT_EQ(cache.ask(get("/x")).body, "body");
  cache.clock().advance_wall(std::chrono::seconds(601));
  EXPECT_EQ(cache.ask(get("/x")).status, 502) << "nothing allows the stale answer";
}

// An interim answer makes the cache set its next deadline, which the moved clock has put into the past.
TEST(SilentUpstream, IsAGatewayTimeout) {
  CacheUnderTest* moved = nullptr;
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    moved->clock().shorten_timeouts(limits::kBodyStallTimeout + std::chrono::seconds(1));
    connection.send("HTTP/1.1 103 Early Hints\r\n\r\n");
    std::string ignored;
    connection.read_some(ignored, 1);
  });
  CacheUnderTest cache(origin.port());
  moved = &cache;
  const ClientAnswer answer = cache.ask(get("/x"));
  EXPECT_EQ(answer.status, 504);
  EXPECT_TRUE(answer.complete());
}

TEST(SilentUpstream, StallingInsideABodyIsACutAnswer) {
  CacheUnderTest* moved = nullptr;
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    const bool store = request.target() == "/stored";
    connection.send("HTTP/1.1 200 OK\r\n" + (store ? std::string("ETag: \"v1\"\r\n") : kNoStore) +
                    "Content-Length: 10\r\n\r\n12");
    std::string ignored;
    if (request.target() == "/x") moved->clock().shorten_timeouts(limits::kBodyStallTimeout + std::chrono::seconds(1));
    connection.send("3");
    connection.read_some(ignored, 1);
  });
  CacheUnderTest cache(origin.port());
  moved = &cache;
  RawClient client = cache.connect();
  client.send(get("/x"));
  const ClientAnswer answer = client.read_answer();
  EXPECT_FALSE(answer.complete());
  EXPECT_NE(answer.end, ClientAnswer::End::kTimeout);
}

TEST(SilentUpstream, ConnectingTakesNoLongerThanItsLimit) {
  // A listener whose queue is full answers no further SYN.
  const ListeningSocket full = listen_loopback(0);
  const Socket first = connect_loopback(full.port);
  CacheUnderTest cache(full.port);
  cache.clock().shorten_timeouts(limits::kConnectTimeout + std::chrono::seconds(1));
  std::vector<std::unique_ptr<RawClient>> clients;
  bool timed_out = false;
  for (int i = 0; i < 4 && !timed_out; ++i) {
    clients.push_back(std::make_unique<RawClient>(cache.port()));
    clients.back()->send(get("/" + std::to_string(i)));
    cache.clock().shorten_timeouts(limits::kConnectTimeout + std::chrono::seconds(1));
    if (i < 2) continue;  // these may still have found room in the queue and wait for an answer
    timed_out = clients.back()->read_answer().status == 504;
  }
  EXPECT_TRUE(timed_out);
}

TEST(IdleClients, AreClosed) {
  ScriptedOrigin origin(
      [](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kNoStore, "x")); });
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  EXPECT_EQ(client.ask(get("/x")).body, "x");
  cache.clock().shorten_timeouts(limits::kClientIdleTimeout + std::chrono::seconds(1));
  RawClient idle = cache.connect();
  EXPECT_TRUE(idle.closed_by_peer());
}

}  // namespace
}  // namespace nezha::test
