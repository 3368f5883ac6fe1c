// Several endpoints with the same data: all are used, and a dead one is in nobody's way.
#include <gtest/gtest.h>

#include <atomic>

#include "cache/fill/connect_time.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

ScriptedOrigin::Handler named(const std::string& name) {
  return [name](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "Cache-Control: no-store\r\nX-Who: " + name + "\r\nConnection: close\r\n", name));
    connection.close();
  };
}

CacheOptions with_ports(std::vector<uint16_t> ports) {
  CacheOptions options;
  options.loops = 1;
  options.more_ports = std::move(ports);
  return options;
}

TEST(Endpoints, AllAreUsed) {
  ScriptedOrigin a(named("a")), b(named("b")), c(named("c"));
  CacheUnderTest cache(a.port(), with_ports({b.port(), c.port()}));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(cache.ask(get("/" + std::to_string(i))).status, 200);
  for (const ScriptedOrigin* origin : {&a, &b, &c}) EXPECT_GE(origin->count(), 2u);
}

TEST(Endpoints, ADeadOneIsSkippedAndComesBack) {
  auto dead = std::make_unique<ScriptedOrigin>(named("dead"));
  const uint16_t port = dead->port();
  ScriptedOrigin alive(named("alive"));
  CacheUnderTest cache(port, with_ports({alive.port()}));
  dead.reset();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(cache.ask(get("/x")).value("X-Who"), "alive");
  EXPECT_EQ(cache.metric("nezha_cache_upstream_connect_failures_total"), 1) << "it is not tried each time";
  cache.clock().shorten_timeouts(-std::chrono::seconds(11));  // later
  for (int i = 0; i < 4; ++i) EXPECT_EQ(cache.ask(get("/x")).value("X-Who"), "alive");
  EXPECT_EQ(cache.metric("nezha_cache_upstream_connect_failures_total"), 2) << "now and then it is";
}

TEST(Endpoints, AllDeadIsA502) {
  uint16_t port = 0;
  {
    ScriptedOrigin gone(named("gone"));
    port = gone.port();
  }
  CacheUnderTest cache(port, with_ports({port}));
  EXPECT_EQ(cache.ask(get("/x")).status, 502);
}

ScriptedOrigin::Handler kept_alive(const std::string& name) {
  return [name](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "Cache-Control: no-store\r\nX-Who: " + name + "\r\n", name));
  };
}

// Connections that rest must not draw all requests to where the first one went.
TEST(Endpoints, AllAreUsedOverConnectionsThatStay) {
  ScriptedOrigin a(kept_alive("a")), b(kept_alive("b")), c(kept_alive("c"));
  CacheUnderTest cache(a.port(), with_ports({b.port(), c.port()}));
  for (int i = 0; i < 30; ++i) EXPECT_EQ(cache.ask(get("/" + std::to_string(i))).status, 200);
  for (const ScriptedOrigin* origin : {&a, &b, &c}) EXPECT_GE(origin->count(), 8u);
  EXPECT_EQ(cache.metric("nezha_cache_upstream_connections_total"), 3) << "each of them rests and is used again";
}

// One that took a request and died is not asked again for it, also when the others cannot be connected.
TEST(Endpoints, FailOverDoesNotReturn) {
  ScriptedOrigin broken([](OriginConnection& connection, const RecordedRequest&) { connection.reset(); });
  uint16_t gone = 0;
  {
    ScriptedOrigin origin(named("gone"));
    gone = origin.port();
  }
  CacheUnderTest cache(broken.port(), with_ports({gone}));
  EXPECT_EQ(cache.ask(get("/x")).status, 502);
  EXPECT_EQ(broken.count(), 1u);
}

TEST(Endpoints, EachAddressHasItsTimeToConnect) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  const SteadyTime now{};
  EXPECT_EQ(cache::connect_deadline(now, now + seconds(10), 1) - now, seconds(10));
  EXPECT_EQ(cache::connect_deadline(now, now + seconds(10), 4) - now, milliseconds(2500));
  EXPECT_EQ(cache::connect_deadline(now, now + seconds(10), 300) - now, seconds(1));
  EXPECT_EQ(cache::connect_deadline(now, now - seconds(1), 2) - now, seconds(1));
}

// One that takes requests and dies over them.
TEST(Endpoints, ARequestThatWasNotAnsweredGoesToAnother) {
  ScriptedOrigin broken([](OriginConnection& connection, const RecordedRequest&) { connection.reset(); });
  ScriptedOrigin alive(named("alive"));
  CacheUnderTest cache(broken.port(), with_ports({alive.port()}));
  int later_s = 0;
  for (const std::string method : {"GET", "HEAD"}) {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(cache.ask(get("/x", "", method), method == "HEAD").value("X-Who"), "alive");
    cache.clock().shorten_timeouts(-std::chrono::seconds(later_s += 11));
  }
}

// What may have been done, or is still being done, must not be done twice.
TEST(Endpoints, AWriteIsNotRepeated) {
  ScriptedOrigin first([](OriginConnection& connection, const RecordedRequest&) { connection.reset(); });
  ScriptedOrigin second([](OriginConnection& connection, const RecordedRequest&) { connection.reset(); });
  CacheUnderTest cache(first.port(), with_ports({second.port()}));
  size_t sent = 0;
  for (const std::string& request : {get("/x", "Content-Length: 2\r\n", "POST") + "ab", get("/x", "", "DELETE"),
                                     get("/x", "Content-Length: 0\r\n", "PUT")}) {
    EXPECT_EQ(cache.ask(request).status, 502) << request;
    EXPECT_EQ(first.count() + second.count(), ++sent) << request;
  }
}

}  // namespace
}  // namespace nezha::test
