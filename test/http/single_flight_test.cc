// Many clients, one object: one fetch, streamed to all; what happens when the leader leaves, fails, or turns out not to
// be storable.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <thread>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

using Mode = config::Freshness::Mode;
const std::string kFresh = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";
constexpr size_t kMiB = 1024 * 1024;

// Runs `count` clients at once; `each(i)` is one of them.
void together(size_t count, const std::function<void(size_t)>& each) {
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i) threads.emplace_back([&each, i] { each(i); });
  for (auto& thread : threads) thread.join();
}

class Herd : public testing::TestWithParam<std::tuple<Mode, bool>> {};

TEST_P(Herd, FiftyColdClientsAreOneFetch) {
  const auto [mode, chunked] = GetParam();
  const std::string body = pattern_bytes(3 * kMiB + 7, 1);
  Event go;
  ScriptedOrigin origin([&, chunked = chunked](OriginConnection& connection, const RecordedRequest&) {
    const std::string answer = chunked ? chunked_response(kFresh, body, 100'000) : response(200, kFresh, body);
    connection.send(std::string_view(answer).substr(0, kMiB));
    go.wait();  // half of the clients come while the body is under way
    connection.send(std::string_view(answer).substr(kMiB));
  });
  CacheUnderTest cache(origin.port(), with_freshness(mode, 600));
  std::atomic<size_t> asked{0};
  together(50, [&](size_t i) {
    RawClient client = cache.connect(i % 5 == 0 ? 4096 : 0);  // some take it slowly
    client.send(get("/x"));
    if (++asked == 50) go.set();
    const ClientAnswer answer = client.read_answer();
    EXPECT_TRUE(answer.complete());
    EXPECT_TRUE(answer.body == body) << i;
  });
  EXPECT_EQ(origin.count(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Modes, Herd,
                         testing::Combine(testing::Values(Mode::kHttp, Mode::kTtl, Mode::kImmutable), testing::Bool()));

TEST(SingleFlight, TheFillOutlivesItsLeader) {
  const std::string body = pattern_bytes(4 * kMiB, 2);
  Event gone;
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    const std::string answer = response(200, kFresh, body);
    connection.send(std::string_view(answer).substr(0, kMiB));
    gone.wait();
    connection.send(std::string_view(answer).substr(kMiB));
  });
  CacheUnderTest cache(origin.port());
  {
    RawClient leader = cache.connect();
    leader.send(get("/x"));
    EXPECT_EQ(leader.read_head().status, 200);
    leader.read_bytes(1000);
    leader.socket().reset();
  }
  gone.set();
  ASSERT_TRUE(cache.wait_stored("/x"));
  const ClientAnswer hit = cache.ask(get("/x"));
  EXPECT_TRUE(hit.body == body);
  EXPECT_EQ(origin.count(), 1u);
}

TEST(SingleFlight, FollowersDoNotPayForALeaderWhoLeftBeforeAnInterimAnswer) {
  Event gone;
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    gone.wait();
    for (int i = 0; i < 100; ++i) connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
    connection.send(response(200, kFresh, "body"));
  });
  CacheUnderTest cache(origin.port());
  RawClient leader = cache.connect();
  leader.send(get("/x"));
  ASSERT_TRUE(origin.wait_for_count(1));
  RawClient follower = cache.connect();
  follower.send(get("/x"));
  leader.socket().reset();
  gone.set();
  EXPECT_EQ(follower.read_answer().body, "body");
}

TEST(SingleFlight, FollowersOfAFailedLeaderGetAnError) {
  Event followers;
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    followers.wait();
    connection.reset();
  });
  CacheUnderTest cache(origin.port());
  std::atomic<size_t> asked{0};
  together(20, [&](size_t) {
    RawClient client = cache.connect();
    client.send(get("/x"));
    if (++asked == 20) followers.set();
    const ClientAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 502);
    EXPECT_TRUE(answer.complete());
  });
  origin.set_handler(
      [](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kFresh, "good")); });
  EXPECT_EQ(cache.ask(get("/x")).body, "good");
}

TEST(SingleFlight, WaitersOfAnUncacheableAnswerGoOnTheirOwnAtOnce) {
  for (const std::string fields :
       {"Cache-Control: no-store\r\n", "Cache-Control: private\r\n", "Set-Cookie: a=b\r\n", "Vary: *\r\n"}) {
    constexpr size_t kClients = 12;
    // No body ends before all have reached the origin: clients that queue behind one would never get there.
    Event first, all;
    std::atomic<size_t> reached{0};
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
      if (++reached == 1) first.wait();
      const std::string answer = response(200, fields, "mine");
      connection.send(std::string_view(answer).substr(0, answer.size() - 1));
      if (reached == kClients) all.set();
      EXPECT_TRUE(all.wait());
      connection.send("e");
    });
    CacheUnderTest cache(origin.port());
    std::atomic<size_t> asked{0};
    together(kClients, [&](size_t) {
      RawClient client = cache.connect();
      client.send(get("/x"));
      if (++asked == kClients) first.set();
      EXPECT_EQ(client.read_answer().body, "mine");
    });
    EXPECT_EQ(origin.count(), kClients) << fields;
  }
}

TEST(SingleFlight, ErrorAnswersReleaseTheWaiters) {
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest&) { connection.send(response(503, "", "busy")); });
  CacheUnderTest cache(origin.port());
  together(20, [&](size_t) { EXPECT_EQ(cache.ask(get("/x")).status, 503); });
}

TEST(SingleFlight, VariantsAreNotSharedWithWaiters) {
  Event all;
  std::atomic<size_t> asked{0};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    all.wait();
    connection.send(response(200, kFresh + "Vary: Accept\r\n", request.field("Accept").value_or("none")));
  });
  CacheUnderTest cache(origin.port());
  together(12, [&](size_t i) {
    RawClient client = cache.connect();
    const std::string accept = "type/" + std::to_string(i % 3);
    client.send(get("/x", "Accept: " + accept + "\r\n"));
    if (++asked == 12) all.set();
    EXPECT_EQ(client.read_answer().body, accept);
  });
  // One for each variant; one that comes when the first has landed does not know of those who gather anew.
  EXPECT_LE(origin.count(), 6u);
}

TEST(SingleFlight, ASlowClientDoesNotHoldUpTheOthersOrTheFill) {
  const std::string body = pattern_bytes(20 * kMiB, 3);
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kFresh, body)); });
  CacheUnderTest cache(origin.port());
  RawClient slow = cache.connect(4096);
  slow.send(get("/x"));
  EXPECT_EQ(slow.read_head().status, 200);
  EXPECT_TRUE(cache.ask(get("/x")).body == body);
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_TRUE(slow.read_bytes(body.size()) == body);
  EXPECT_EQ(origin.count(), 1u);
}

// Too large for the tier: only relayed, in two herds. The second comes when the first has left the beginning behind.
TEST(SingleFlight, HerdsShareWhatIsNotStored) {
  constexpr size_t kClients = 20;
  const std::string body = pattern_bytes(14 * kMiB, 5);
  const std::string answer = response(200, kFresh, body);
  std::array<Event, 2> joined;
  Event late;
  std::atomic<size_t> fetches{0};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    const size_t number = fetches++;
    std::string_view rest = answer;
    const auto send = [&](size_t size) {
      connection.send(rest.substr(0, size));
      rest.remove_prefix(size);
    };
    send(kMiB / 4);
    EXPECT_TRUE(number >= joined.size() || joined[number].wait());
    send(4 * kMiB);
    EXPECT_TRUE(number > 0 || late.wait());
    send(rest.size());
  });
  CacheOptions options;
  options.tiers = {{config::Medium::kMemory, "", 16 * kMiB}};
  CacheUnderTest cache(origin.port(), options);
  std::atomic<size_t> passed{0};
  const auto herd = [&](size_t number) {
    const auto collapsed = [&] { return cache.metric("nezha_cache_requests_total{result=\"collapsed\"}"); };
    std::thread watcher([&, number] {
      EXPECT_TRUE(eventually([&] { return collapsed() >= double((number + 1) * (kClients - 1)); }));
      joined[number].set();
    });
    together(kClients, [&, number](size_t i) {
      RawClient client = cache.connect(i % 5 == 0 ? 65'536 : 0);  // some take it slowly
      client.send(get("/x"));
      if (number == 0) {
        const ClientAnswer head = client.read_head();
        const std::string status = head.cache_status();
        EXPECT_TRUE(status == "nezha; fwd=uri-miss; detail=no-room" || status == "nezha; fwd=uri-miss; collapsed")
            << status;
        EXPECT_TRUE(client.read_bytes(2 * kMiB) == body.substr(0, 2 * kMiB));
        ++passed;
        EXPECT_TRUE(client.read_bytes(body.size() - 2 * kMiB) == body.substr(2 * kMiB));
      } else {
        EXPECT_TRUE(client.read_answer().body == body);
      }
    });
    watcher.join();
  };
  std::thread first([&] { herd(0); });
  EXPECT_TRUE(eventually([&] { return passed == kClients; }));
  std::thread second([&] { herd(1); });
  second.join();
  late.set();
  first.join();
  EXPECT_EQ(origin.count(), 2u);
}

TEST(SingleFlight, RevalidatingFollowersAskForThemselves) {
  const std::string body = pattern_bytes(2 * kMiB, 4);
  Event go;
  std::atomic<size_t> conditional{0};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.field("If-None-Match") == "\"v1\"") {
      if (++conditional == 9) go.set();
      return void(connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n"));
    }
    const std::string answer = response(200, kFresh, body);
    connection.send(std::string_view(answer).substr(0, kMiB));
    EXPECT_TRUE(go.wait()) << "followers are checked while the body is under way";
    connection.send(std::string_view(answer).substr(kMiB));
  });
  CacheUnderTest cache(origin.port(), with_freshness(Mode::kRevalidate));
  together(10, [&](size_t) { EXPECT_TRUE(cache.ask(get("/x")).body == body); });
  EXPECT_EQ(origin.count(), 10u);
}

}  // namespace
}  // namespace nezha::test
