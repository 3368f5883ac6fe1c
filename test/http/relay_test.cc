// What is not stored is still shared, as a relay: who joins one, who ends it, and that nobody on it pays for another.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
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
  for (int i = 0; i < 2; ++i) cache.workers().start([release] { release.wait(); });
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

// Two read what is not stored; one of them stops, and goes on when the other has everything.
void one_stops(const std::string& fields, bool leader_stops, bool may_be_cut) {
  const std::string body = pattern_bytes(14 * kMiB, 2);
  Event joined;
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    size_t begin = 0;
    if (std::sscanf(request.field("Range").value_or("").c_str(), "bytes=%zu-", &begin) == 1) {
      const std::string range = "Content-Range: bytes " + std::to_string(begin) + "-" +
                                std::to_string(body.size() - 1) + "/" + std::to_string(body.size()) + "\r\n";
      return void(connection.send(response(206, fields + range, body.substr(begin))));
    }
    const std::string answer = response(200, fields, body);
    connection.send(std::string_view(answer).substr(0, 10'000));
    EXPECT_TRUE(joined.wait());
    connection.send(std::string_view(answer).substr(10'000));
  });
  CacheUnderTest cache(origin.port(), small_tier());
  RawClient leader = cache.connect(4096), follower = cache.connect(4096);
  leader.send(get("/x"));
  EXPECT_EQ(leader.read_head().status, 200);
  follower.send(get("/x"));
  EXPECT_EQ(follower.read_head().cache_status(), "nezha; fwd=uri-miss; collapsed");
  joined.set();
  RawClient &slow = leader_stops ? leader : follower, &fast = leader_stops ? follower : leader;
  if (!may_be_cut) {
    std::thread other([&] { EXPECT_TRUE(fast.read_bytes(body.size()) == body); });
    std::this_thread::sleep_for(std::chrono::seconds(3));
    EXPECT_TRUE(slow.read_bytes(body.size()) == body);
    other.join();
    EXPECT_EQ(origin.count(), 1u);
    return;
  }
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(fast.read_bytes(body.size()) == body);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
  EXPECT_TRUE(slow.read_bytes(body.size()) == body);
  EXPECT_EQ(origin.count(), 2u);
  EXPECT_EQ(origin.last().field("If-Match"), "\"v1\"");
  EXPECT_EQ(cache.metric("nezha_cache_continued_answers_total"), 1);
}

TEST(Relay, AFollowerThatStopsHoldsUpNobody) { one_stops(kFresh + "Accept-Ranges: bytes\r\n", false, true); }
TEST(Relay, ALeaderThatStopsHoldsUpNobody) { one_stops(kFresh + "Accept-Ranges: bytes\r\n", true, true); }
TEST(Relay, NobodyIsCutOffWhomTheSourceMayNotContinue) {
  one_stops(kFresh, false, false);
  one_stops("Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nCache-Control: max-age=600\r\nAccept-Ranges: bytes\r\n",
            false, false);
}

// The source would wait until the client has taken what is stored.
TEST(Relay, IsNotPutBehindMuchThatIsStored) {
  const std::string body = pattern_bytes(18 * kMiB, 3);
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    size_t begin = 0, last = body.size() - 1;
    const int read = std::sscanf(request.field("Range").value_or("").c_str(), "bytes=%zu-%zu", &begin, &last);
    if (read < 1) return void(connection.send(response(200, kFresh, body)));
    const std::string range = "Content-Range: bytes " + std::to_string(begin) + "-" + std::to_string(last) + "/" +
                              std::to_string(body.size()) + "\r\n";
    connection.send(response(206, kFresh + range, body.substr(begin, last + 1 - begin)));
  });
  CacheUnderTest cache(origin.port(), small_tier());
  EXPECT_EQ(cache.ask(get("/x", "Range: bytes=0-3999999\r\n")).status, 206);
  ASSERT_TRUE(cache.wait_stored("/x"));
  const ClientAnswer answer = cache.ask(get("/x"));
  EXPECT_TRUE(answer.body == body);
  EXPECT_FALSE(origin.last().has("Range")) << answer.cache_status();
}

}  // namespace
}  // namespace nezha::test
