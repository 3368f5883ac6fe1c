// The cache's process is killed or stopped under its clients: every answer is right or breaks off, no connection is
// ever refused or lost in a queue, and the supervisor stays. NEZHA_KILLS: how often (default 5; after each, the next
// start takes longer).
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <random>
#include <thread>

#include "test/supervise/supervised.h"
#include "test/support/environment.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

constexpr size_t kObjects = 12;
constexpr size_t kClients = 4;

std::string body_of(size_t object) {
  static constexpr size_t kSizes[] = {1, 5000, 70'000, 600'001};
  return pattern_bytes(kSizes[object % std::size(kSizes)], object);
}

void serve_object(OriginConnection& connection, const RecordedRequest& request) {
  const size_t object = std::stoull(request.target().substr(1));
  connection.send(response(200, "ETag: \"" + std::to_string(object) + "\"\r\n", body_of(object)));
}

struct Seen {
  std::atomic<uint64_t> answers{0}, hits{0}, relayed{0}, broken_off{0}, refused{0};
};

// One answer. False when the connection is of no more use.
bool read_object(RawClient& client, size_t object, Seen& seen) {
  const ClientAnswer answer = client.ask(get("/" + std::to_string(object)));
  const std::string body = body_of(object);
  if (!answer.complete()) {
    EXPECT_TRUE(answer.end == ClientAnswer::End::kReset || answer.end == ClientAnswer::End::kTruncated);
    EXPECT_TRUE(body.starts_with(answer.body)) << "what came before the break is right";
    EXPECT_EQ(answer.cache_status().find("cache-away"), std::string::npos) << "nobody killed the relay";
    ++seen.broken_off;
    return false;
  }
  EXPECT_EQ(answer.status, 200) << answer.head << answer.body;
  EXPECT_TRUE(answer.body == body) << object;
  ++seen.answers;
  seen.hits += answer.cache_status().find("hit") != std::string::npos;
  seen.relayed += answer.cache_status().find("cache-away") != std::string::npos;
  return answer.value("Connection") != "close";
}

void run_client(uint16_t port, uint64_t seed, const std::atomic<bool>& over, Seen& seen) {
  std::mt19937_64 random(seed);
  while (!over && !testing::Test::HasFailure()) {
    RawClient client(try_connect_loopback(port));
    seen.refused += !client.socket().open();
    while (client.socket().open() && !over && random() % 20 != 0) {
      if (!read_object(client, random() % kObjects, seen)) break;
    }
  }
}

bool all_threads_are_stopped(pid_t process) {
  bool stopped = true;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    std::ifstream file(thread.path() / "stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    stopped &= stat.substr(stat.rfind(')') + 2, 1) == "T";
  }
  return stopped;
}

TEST(Supervise, KillsUnderLoad) {
  const uint64_t seed = from_environment("NEZHA_SEED", std::random_device{}());
  const uint64_t kills = from_environment("NEZHA_KILLS", 5);
  ScriptedOrigin origin(serve_object);
  Supervised supervised(origin.port());
  ASSERT_NO_FATAL_FAILURE(supervised.start());
  const size_t descriptors = supervised.process().descriptors();
  std::atomic<bool> over{false};
  Seen seen;
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kClients; ++i)
    clients.emplace_back([&, i] { run_client(supervised.port(), seed * kClients + i, over, seen); });
  for (uint64_t kill = 0; kill < kills && !HasFailure(); ++kill) {
    const size_t accepted = supervised.accepted();
    const uint64_t answers = seen.answers, relayed = seen.relayed;
    EXPECT_TRUE(eventually([&] { return seen.answers > answers + 20; }));
    supervised.kill_cache();
    EXPECT_TRUE(eventually([&] { return seen.relayed > relayed || supervised.accepted() > accepted; }));
    EXPECT_TRUE(supervised.wait_back(accepted)) << supervised.process().log();
  }
  const uint64_t hits = seen.hits;
  EXPECT_TRUE(eventually([&] { return seen.hits > hits || HasFailure(); })) << "the last one serves from its tier";
  over = true;
  for (auto& client : clients) client.join();
  std::cout << "NEZHA_SEED=" << seed << ": " << kills << " kills, " << seen.answers << " answers checked, " << seen.hits
            << " hits, " << seen.relayed << " relayed, " << seen.broken_off
            << " broken off; the supervisor's memory: " << supervised.process().private_bytes() / 1024 << " KiB"
            << std::endl;
  EXPECT_EQ(seen.refused, 0u);
  EXPECT_GT(seen.relayed, 0u);
  EXPECT_TRUE(eventually([&] { return supervised.process().descriptors() <= descriptors; })) << "none is leaked";
  EXPECT_EQ(supervised.process().stop(), 0) << "the one process that was started, and it ends as it should";
}

TEST(Supervise, AStoppedCacheIsReplacedAndItsQueueAnswered) {
  ScriptedOrigin origin(serve_object);
  Supervised supervised(origin.port());
  ASSERT_NO_FATAL_FAILURE(supervised.start());
  EXPECT_TRUE(supervised.becomes_hit("/2"));
  const pid_t stopped = supervised.cache();
  const size_t accepted = supervised.accepted();
  ASSERT_EQ(::kill(stopped, SIGSTOP), 0);
  // kill() returns before each thread has stopped: until then one may accept, and what it took dies with it.
  ASSERT_TRUE(eventually([&] { return all_threads_are_stopped(stopped); }));
  std::vector<RawClient> waiting;
  for (size_t i = 0; i < 100; ++i) {
    waiting.emplace_back(supervised.port());
    EXPECT_TRUE(waiting.back().send(get("/2")));
  }
  size_t relayed = 0;
  for (auto& client : waiting) {
    const ClientAnswer answer = client.read_answer();
    EXPECT_TRUE(answer.complete()) << static_cast<int>(answer.end);
    EXPECT_TRUE(answer.body == body_of(2));
    relayed += answer.cache_status().find("cache-away") != std::string::npos;
  }
  EXPECT_GT(relayed, 0u);
  EXPECT_TRUE(supervised.wait_back(accepted)) << supervised.process().log();
  EXPECT_NE(supervised.cache(), stopped);
  EXPECT_TRUE(eventually([&] { return ::kill(stopped, 0) != 0; })) << "it was killed, and reaped";
  EXPECT_TRUE(supervised.becomes_hit("/2"));
  EXPECT_EQ(supervised.process().stop(), 0);
}

}  // namespace
}  // namespace nezha::test
