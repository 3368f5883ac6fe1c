// Watch against the fake server: every way a watch can end, and that the state is right after each.
#include "nezha/k8s/watch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <optional>

#include "test/support/fake_api_server.h"

namespace nezha::k8s {
namespace {

const WatchOptions kFast{.backoff_first = std::chrono::milliseconds(1), .backoff_max = std::chrono::milliseconds(4)};

std::string path_of(const std::string& name) { return "/api/v1/namespaces/team-a/configmaps/" + name; }

// A watch over all ConfigMaps of team-a, and what it last told.
class WatchTest : public ::testing::Test {
 protected:
  void start(const WatchOptions& options = kFast) {
    const Scope scope{{"", "v1", "configmaps"}, Namespace("team-a"), "", ""};
    watch_.emplace(
        server_.address(), scope, options,
        [this](const Snapshot& snapshot) {
          std::lock_guard lock(mutex_);
          last_ = snapshot;
          ++calls_;
        },
        *log_, &metrics_->counter("restarts", ""));
  }

  void TearDown() override { watch_.reset(); }

  std::optional<std::string> names() const {
    std::lock_guard lock(mutex_);
    if (!last_) return std::nullopt;
    std::string out;
    for (const auto& [key, object] : *last_) out += key.name + " ";
    return out;
  }

  bool await(const std::string& wanted) {
    const bool came = server_.wait_until([&] { return names() == wanted; });
    if (!came) ADD_FAILURE() << "last state: " << names().value_or("(none)");
    return came;
  }

  // The initial list is known and a watch is open.
  void start_and_settle(const std::string& wanted) {
    start();
    ASSERT_TRUE(await(wanted));
    ASSERT_TRUE(server_.wait_until([&] { return server_.open_watches() == 1; }));
  }

  size_t lists() const { return server_.count("GET", "limit="); }
  size_t watches() const { return server_.count("GET", "watch=true"); }

  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();
  test::FakeApiServer server_;
  mutable std::mutex mutex_;
  std::optional<Snapshot> last_;
  int calls_ = 0;
  std::optional<Watch> watch_;
};

TEST_F(WatchTest, EmptyCollectionIsToldFirst) {
  start();
  EXPECT_TRUE(await(""));
}

TEST_F(WatchTest, InitialListThenEveryChange) {
  server_.put(path_of("a"), R"({})");
  start_and_settle("a ");
  server_.put(path_of("b"), R"({})");
  EXPECT_TRUE(await("a b "));
  server_.remove(path_of("a"));
  EXPECT_TRUE(await("b "));
  server_.put("/api/v1/namespaces/other/configmaps/x", R"({})");
  server_.put(path_of("c"), R"({})");
  EXPECT_TRUE(await("b c "));
  EXPECT_EQ(lists(), 1u);
}

TEST_F(WatchTest, KeepsWhatItIsToldToOfEachObject) {
  WatchOptions options = kFast;
  options.reduce = [](const std::string& json) { return json.find("wanted") == std::string::npos ? "-" : "+"; };
  const auto kept = [this] {
    std::lock_guard lock(mutex_);
    std::string out;
    if (last_)
      for (const auto& [key, object] : *last_) out += key.name + object->json + object->resource_version.substr(0, 1);
    return out;
  };
  server_.put("/api/v1/namespaces/team-a/configmaps/listed", R"({"data":{"wanted":"1"}})");
  start(options);
  EXPECT_TRUE(server_.wait_until([&] { return kept() == "listed+1"; })) << kept();
  server_.put("/api/v1/namespaces/team-a/configmaps/watched", R"({"data":{}})");
  EXPECT_TRUE(server_.wait_until([&] { return kept() == "listed+1watched-1"; })) << kept();
}

TEST_F(WatchTest, ListsInPages) {
  for (const char* name : {"a", "b", "c", "d", "e"}) server_.put(path_of(name), R"({})");
  WatchOptions options = kFast;
  options.page_items = 2;
  start(options);
  EXPECT_TRUE(await("a b c d e "));
  EXPECT_EQ(lists(), 3u);
}

TEST_F(WatchTest, ResumesWithoutAListWhenTheServerEndsTheWatch) {
  server_.put(path_of("a"), R"({})");
  start_and_settle("a ");
  server_.put(path_of("b"), R"({})");
  ASSERT_TRUE(await("a b "));
  server_.end_watches();
  ASSERT_TRUE(server_.wait_until([&] { return watches() >= 2; }));
  server_.put(path_of("c"), R"({})");
  EXPECT_TRUE(await("a b c "));
  EXPECT_EQ(lists(), 1u);
}

TEST_F(WatchTest, ResumesWithoutAListWhenTheConnectionIsCut) {
  server_.put(path_of("a"), R"({})");
  start_and_settle("a ");
  server_.cut_watches();
  server_.put(path_of("b"), R"({})");
  EXPECT_TRUE(await("a b "));
  EXPECT_EQ(lists(), 1u);
}

TEST_F(WatchTest, BookmarkMovesTheResumePoint) {
  server_.put(path_of("a"), R"({})");
  start_and_settle("a ");
  server_.forget_history();  // what the watch last saw is forgotten now
  server_.send_bookmarks();  // but this tells it a version that is not
  server_.put(path_of("b"), R"({})");
  ASSERT_TRUE(await("a b "));
  server_.end_watches();
  ASSERT_TRUE(server_.wait_until([&] { return watches() >= 2 && server_.open_watches() == 1; }));
  EXPECT_EQ(lists(), 1u);
}

TEST_F(WatchTest, ListsAgainOn410AsStatus) {
  server_.put(path_of("a"), R"({})");
  start_and_settle("a ");
  server_.drop_events(true);
  server_.remove(path_of("a"));
  server_.put(path_of("b"), R"({})");
  server_.drop_events(false);
  server_.forget_history();
  server_.end_watches();
  EXPECT_TRUE(await("b "));
  EXPECT_EQ(lists(), 2u);
}

TEST_F(WatchTest, ListsAgainOn410AsEvent) {
  server_.put(path_of("a"), R"({})");
  start_and_settle("a ");
  server_.drop_events(true);
  server_.put(path_of("b"), R"({})");
  server_.drop_events(false);
  server_.send_raw(R"({"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}})"
                   "\n");
  EXPECT_TRUE(await("a b "));
}

TEST_F(WatchTest, OtherErrorEventsListAgainAfterABackOff) {
  start_and_settle("");
  server_.drop_events(true);
  server_.put(path_of("b"), R"({})");
  server_.drop_events(false);
  server_.send_raw(R"({"type":"ERROR","object":{"code":500,"message":"etcd leader changed"}})"
                   "\n");
  EXPECT_TRUE(await("b "));
}

TEST_F(WatchTest, GarbageInTheStreamListsAgain) {
  start_and_settle("");
  for (const char* garbage : {"garbage\n", "{}\n", "{\"type\":\"ADDED\",\"object\":7}\n", "\xff\xff\n"}) {
    const size_t lists_before = lists(), watches_before = watches();
    server_.send_raw(garbage);
    ASSERT_TRUE(server_.wait_until([&] {
      return lists() > lists_before && watches() > watches_before && server_.open_watches() == 1;
    })) << garbage;
  }
  server_.put(path_of("still-alive"), R"({})");
  EXPECT_TRUE(await("still-alive "));
}

TEST_F(WatchTest, ChangesBeforeGarbageInTheSamePieceAreNotLost) {
  start_and_settle("");
  const std::string version = server_.put(path_of("a"), R"({})");
  ASSERT_TRUE(await("a "));
  server_.drop_events(true);
  server_.remove(path_of("a"));
  server_.drop_events(false);
  server_.send_raw(R"({"type":"DELETED","object":{"metadata":{"name":"a","namespace":"team-a","resourceVersion":")" +
                   version + "\"}}}\ngarbage\n");
  EXPECT_TRUE(await(""));
}

TEST_F(WatchTest, RetriesWhileTheListFails) {
  std::atomic<int> failures{5};
  server_.set_faults([&](const test::SeenRequest&) -> std::optional<test::Fault> {
    if (failures-- <= 0) return std::nullopt;
    return test::Fault{.status = 503, .body = "not ready"};
  });
  server_.put(path_of("a"), R"({})");
  start();
  EXPECT_TRUE(await("a "));
}

TEST_F(WatchTest, RetriesWhileTheWatchIsRefused) {
  std::atomic<int> failures{3};
  server_.set_faults([&](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (!request.watch || failures-- <= 0) return std::nullopt;
    return test::Fault{.status = 429, .body = "slow down"};
  });
  start_and_settle("");
  server_.put(path_of("a"), R"({})");
  EXPECT_TRUE(await("a "));
}

TEST_F(WatchTest, ListGarbageIsRetried) {
  std::atomic<int> failures{2};
  server_.set_faults([&](const test::SeenRequest&) -> std::optional<test::Fault> {
    if (failures-- <= 0) return std::nullopt;
    return test::Fault{.status = 200, .body = "{\"items\":"};
  });
  server_.put(path_of("a"), R"({})");
  start();
  EXPECT_TRUE(await("a "));
}

TEST_F(WatchTest, UnchangedListAfterAGapIsNotToldAgain) {
  server_.put(path_of("a"), R"({})");
  start_and_settle("a ");
  server_.forget_history();
  server_.end_watches();
  ASSERT_TRUE(server_.wait_until([&] { return lists() == 2 && server_.open_watches() == 1; }));
  std::lock_guard lock(mutex_);
  EXPECT_EQ(calls_, 1);
}

TEST_F(WatchTest, StopsWhileIdleAndWhileBackingOff) {
  start_and_settle("");
  watch_->stop();
  watch_->stop();
  WatchOptions patient = kFast;
  patient.backoff_first = std::chrono::hours(1);
  patient.backoff_max = std::chrono::hours(1);
  server_.set_faults([](const test::SeenRequest&) { return test::Fault{.status = 500, .body = ""}; });
  server_.forget_requests();
  start(patient);
  ASSERT_TRUE(server_.wait_until([&] { return lists() == 1; }));
  watch_.reset();  // returns although the next attempt is an hour away
}

TEST_F(WatchTest, CountsRestarts) {
  start_and_settle("");
  server_.send_raw("garbage\n");
  ASSERT_TRUE(server_.wait_until([&] { return lists() == 2; }));
  EXPECT_NE(metrics_->expose().find("restarts 1"), std::string::npos);
}

TEST_F(WatchTest, TooManyObjectsAreRefused) {
  WatchOptions options = kFast;
  options.objects_max = 2;
  for (const char* name : {"a", "b", "c"}) server_.put(path_of(name), R"({})");
  start(options);
  ASSERT_TRUE(server_.wait_until([&] { return lists() >= 2; }));
  EXPECT_EQ(names(), std::nullopt);
  server_.remove(path_of("c"));
  EXPECT_TRUE(await("a b "));
}

}  // namespace
}  // namespace nezha::k8s
