// What is not stored is still shared, as a relay: who joins one, who ends it, and that nobody on it pays for another.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "nezha/net/async.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

const std::string kFresh = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";
constexpr size_t kMiB = 1024 * 1024;

CacheOptions small_tier() {
  CacheOptions options;
  options.tiers = {{config::Medium::kMemory, "", 16 * kMiB}};
  return options;
}

// A download finds no more room, and its only client leaves. While it winds up, another client comes.
TEST(Relay, OneThatEndsTakesNobodyAlong) {
  const std::string body = pattern_bytes(4 * kMiB, 1);
  const std::string answer = chunked_response(kFresh, body, kMiB);
  Event full, release;
  std::atomic<size_t> fetches{0};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    if (fetches++ > 0) return void(connection.send(answer));
    connection.send(std::string_view(answer).substr(0, 10'000));
    EXPECT_TRUE(full.wait());
    connection.send(std::string_view(answer).substr(10'000));
  });
  CacheUnderTest cache(origin.port(), small_tier());
  // A piece that cannot be written keeps the download from its end.
  for (int i = 0; i < 2; ++i) cache.workers().start([&] { release.wait(); });
  {
    RawClient leader = cache.connect();
    leader.send(get("/x"));
    EXPECT_EQ(leader.read_head().status, 200);
    leader.read_bytes(5000);
    leader.socket().reset();
  }
  std::vector<std::unique_ptr<cache::Tier::Reservation>> taken;
  while (auto more = cache.store().reserve(kMiB / 4)) taken.push_back(std::move(more));
  full.set();
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0; }));
  RawClient next = cache.connect();
  next.send(get("/x", "Connection: close\r\n"));
  const ClientAnswer head = next.read_head();
  release.set();
  EXPECT_TRUE(next.read_bytes(2 * answer.size()).ends_with("\r\n0\r\n\r\n")) << head.head;
}

}  // namespace
}  // namespace nezha::test
