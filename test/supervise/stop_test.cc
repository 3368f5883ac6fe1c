// How a supervised cache begins and ends: SIGTERM with something under way in the cache or in the relay, a
// configuration that no cache starts with, the supervisor's own death, and orphans.
#include <gtest/gtest.h>

#include <cctype>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "test/supervise/supervised.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

// Holds every answer back until it is told.
struct SlowOrigin {
  Event arrived, answer_it;
  ScriptedOrigin server{[this](OriginConnection& connection, const RecordedRequest&) {
    arrived.set();
    answer_it.wait();
    connection.send(response(200, "", "late"));
  }};
};

void expect_drained(Supervised& supervised, SlowOrigin& origin) {
  RawClient client(supervised.port());
  client.send(get("/a"));
  EXPECT_TRUE(origin.arrived.wait());
  ::kill(supervised.process().id(), SIGTERM);
  EXPECT_TRUE(eventually([&] { return !try_connect_loopback(supervised.port()).open(); })) << "nobody new";
  origin.answer_it.set();
  const ClientAnswer answer = client.read_answer();
  EXPECT_TRUE(answer.complete());
  EXPECT_EQ(answer.body, "late");
  client.socket().close();  // or its answer is kept readable for a while
  EXPECT_EQ(supervised.process().wait(), 0);
}

TEST(SuperviseStop, AnswersOfTheCacheFinish) {
  SlowOrigin origin;
  Supervised supervised(origin.server.port());
  ASSERT_NO_FATAL_FAILURE(supervised.start());
  expect_drained(supervised, origin);
}

TEST(SuperviseStop, RelayedAnswersFinish) {
  SlowOrigin origin;
  Supervised supervised(origin.server.port());
  ASSERT_NO_FATAL_FAILURE(supervised.start());
  supervised.send_away();
  expect_drained(supervised, origin);
}

// The drain time is 30 s: with connections that only rest, none of it is used.
TEST(SuperviseStop, RestingConnectionsDoNotHoldItUp) {
  ScriptedOrigin origin(
      [](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, "", "x")); });
  for (const bool away : {false, true}) {
    Supervised supervised(origin.port());
    ASSERT_NO_FATAL_FAILURE(supervised.start());
    if (away) supervised.send_away();
    RawClient silent(supervised.port()), answered(supervised.port());
    EXPECT_EQ(answered.ask(get("/a")).body, "x");
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(supervised.process().stop(), 0);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::cout << (away ? "away" : "serving") << ": ended " << took.count() << " s after SIGTERM" << std::endl;
    EXPECT_LT(took, std::chrono::seconds(20));
  }
}

// As in a sidecar, whose pod has nobody left to serve: nothing is waited for, neither in the cache nor in the relay.
TEST(SuperviseStop, WithoutDrainTimeNothingHoldsItUp) {
  for (const bool away : {false, true}) {
    SlowOrigin origin;
    Supervised supervised(origin.server.port(), 1, {}, {"--drain-seconds", "0"});
    ASSERT_NO_FATAL_FAILURE(supervised.start());
    if (away) supervised.send_away();
    const pid_t cache = supervised.cache();
    RawClient waiting(supervised.port()), silent(supervised.port());
    waiting.send(get("/a"));
    ASSERT_TRUE(origin.arrived.wait());
    EXPECT_EQ(supervised.process().stop(), 0) << "while the origin still holds its answer";
    EXPECT_EQ(::kill(cache, 0), -1) << "its cache is gone, too";
    origin.answer_it.set();
  }
}

TEST(SuperviseStop, AConfigurationThatNoCacheStartsWithEndsIt) {
  CacheProcess process("tls: {certificates: [{certificate: /nonexistent/crt, key: /nonexistent/key}]}\n", {},
                       {"--supervise"});
  process.launch();
  EXPECT_FALSE(process.wait_ready());
  EXPECT_NE(process.log().find("/nonexistent/crt"), std::string::npos) << process.log();
  EXPECT_EQ(process.wait(), 2);
}

TEST(SuperviseStop, TheCacheDiesWithItsSupervisor) {
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest&) { connection.close(); });
  Supervised supervised(origin.port());
  ASSERT_NO_FATAL_FAILURE(supervised.start());
  const uint16_t port = supervised.port();
  EXPECT_EQ(supervised.process().kill(), -SIGKILL);
  EXPECT_TRUE(eventually([&] { return !try_connect_loopback(port).open(); })) << "nobody listens any more";
}

// Those that ended and were not reaped, too.
size_t children_of(pid_t parent) {
  size_t out = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (!std::isdigit(static_cast<unsigned char>(entry.path().filename().native()[0]))) continue;
    std::ifstream file(entry.path() / "stat");
    std::string text;
    std::getline(file, text);
    const size_t end = text.rfind(')');
    if (end == std::string::npos) continue;
    std::istringstream rest(text.substr(end + 1));
    char state = 0;
    pid_t of = 0;
    rest >> state >> of;
    out += of == parent;
  }
  return out;
}

// As process 1 has children that it never started.
TEST(SuperviseStop, ChildrenOfOthersAreReaped) {
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest&) { connection.close(); });
  Supervised supervised(origin.port(), 1, {"/bin/sh", "-c", "sleep 1 & exec \"$0\" \"$@\""});
  ASSERT_NO_FATAL_FAILURE(supervised.start());
  EXPECT_TRUE(eventually([&] { return children_of(supervised.process().id()) == 1; })) << "the cache alone is left";
}

}  // namespace
}  // namespace nezha::test
