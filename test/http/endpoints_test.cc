// Several endpoints with the same data: all are used, and a dead one is in nobody's way.
#include <gtest/gtest.h>

#include <atomic>

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
