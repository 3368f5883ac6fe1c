// What is named from outside, or in the body of a bulk delete, is gone at once and for good, under every name it has.
#include "cache/purge/purge.h"

#include <gtest/gtest.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "nezha/net/async.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

// Every object is its own path, in the version that stands in `version`.
class PurgeTest : public testing::Test {
 protected:
  static CacheOptions options() {
    CacheOptions out = with_freshness(config::Freshness::Mode::kImmutable);
    out.protocol = config::Protocol::kS3;
    out.more_hosts = {"team.data.example"};
    return out;
  }
  std::string ask(const std::string& path, const std::string& host = "data.example") {
    return cache_.ask("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n").body;
  }
  void store(const std::string& path, const std::string& host = "data.example") {
    ASSERT_EQ(ask(path, host), "v1");
    ASSERT_TRUE(eventually([&] {
      bool must_load = false;
      return cache_.store().find_now({host + path, ""}, {}, must_load) && !cache_.store().is_filling({host + path, ""});
    }));
  }
  Result<size_t> purge(const std::string& json) { return purger_.purge(json); }

  std::atomic<int> version_{1};
  std::atomic<int> status_{200};
  ScriptedOrigin origin_{[this](OriginConnection& connection, const RecordedRequest& request) {
    const std::string version = "v" + std::to_string(version_);
    if (request.method() == "GET")
      connection.send(response(200, "ETag: \"" + version + "\"\r\n", version));
    else
      connection.send(response(status_, "", status_ == 204 ? "" : "<DeleteResult/>"));
  }};
  CacheUnderTest cache_{origin_.port(), options()};
  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();
  cache::Purger purger_{cache_.store(), cache_.approvals(), cache_.clock(), cache_.routes(), {cache_.port()},
                        *log_,          *metrics_};
};

TEST_F(PurgeTest, ByBucketAndKeyUnderEveryName) {
  store("/team/a%20b");
  store("/a%20b", "team.data.example");
  store("/team/other");
  version_ = 2;
  EXPECT_EQ(ask("/team/a%20b"), "v1") << "immutable";
  EXPECT_EQ(purge(R"({"bucket": "team", "key": "a b"})").value(), 2u);
  EXPECT_EQ(ask("/team/a%20b"), "v2");
  EXPECT_EQ(ask("/a%20b", "team.data.example"), "v2");
  EXPECT_EQ(ask("/team/other"), "v1");
}

TEST_F(PurgeTest, ByPrefixPathAndUpstream) {
  for (const std::string path : {"/team/train/1", "/team/train/2", "/team/train%2F3", "/team/test/1", "/x/train/1"})
    store(path);
  store("/train/4", "team.data.example");
  version_ = 2;
  EXPECT_EQ(purge(R"({"bucket": "team", "prefix": "train/"})").value(), 4u);
  for (const std::string path : {"/team/train/1", "/team/train/2", "/team/train%2F3"}) EXPECT_EQ(ask(path), "v2");
  EXPECT_EQ(ask("/train/4", "team.data.example"), "v2");
  EXPECT_EQ(ask("/team/test/1"), "v1");
  EXPECT_EQ(purge(R"({"host": "data.example", "path": "/x/train/1"})").value(), 1u);
  EXPECT_EQ(ask("/x/train/1"), "v2");
  version_ = 3;
  EXPECT_GE(purge(R"({"upstream": "data"})").value(), 5u);
  EXPECT_EQ(ask("/team/test/1"), "v3");
  EXPECT_EQ(ask("/team/train/1"), "v3");
}

TEST_F(PurgeTest, NamesWhatIsNotConfigured) {
  const auto done = purge(R"({"upstream": "x"})");
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().remedy, Remedy::kFixInput);
  EXPECT_EQ(purge(R"({"bucket": "nobody", "key": "k"})").value(), 0u);
}

// What was stored while a host was configured is still there when it no longer is.
TEST_F(PurgeTest, AHostThatLeftTheConfiguration) {
  for (const std::string path : {"/team/a", "/x/b", "/x/c"}) store(path);
  const cache::RouteStore nothing(std::make_shared<const cache::Routes>(std::make_shared<const config::Settings>()));
  cache::Purger purger(cache_.store(), cache_.approvals(), cache_.clock(), nothing, {}, *log_, *metrics_);
  EXPECT_EQ(purger.purge(R"({"host": "data.example", "path": "/team/a"})").value(), 1u);
  EXPECT_EQ(purger.purge(R"({"host": "data.example", "prefix": "/x/"})").value(), 2u);
  version_ = 2;
  EXPECT_EQ(ask("/team/a"), "v2");
  EXPECT_EQ(ask("/x/b"), "v2");
}

// A fill whose request went out before the purge must not publish the old bytes behind it.
TEST_F(PurgeTest, DoomsFillsUnderWay) {
  for (const std::string json : {R"({"bucket": "team", "prefix": "slow"})", R"({"bucket": "team", "key": "slow"})"}) {
    Event asked, purged;
    origin_.set_handler([&](OriginConnection& connection, const RecordedRequest&) {
      connection.send("HTTP/1.1 200 OK\r\nETag: \"old\"\r\nContent-Length: 6\r\n\r\nold");
      asked.set();
      purged.wait();
      connection.send("old");
    });
    RawClient client = cache_.connect();
    client.send(get("/team/slow"));
    asked.wait();
    EXPECT_TRUE(eventually([&] { return purge(json).value() >= 1; })) << json;
    purged.set();
    EXPECT_EQ(client.read_answer().body, "oldold") << "who asked before gets what was there before";
    origin_.set_handler([&](OriginConnection& connection, const RecordedRequest&) {
      connection.send(response(200, "ETag: \"new\"\r\n", "new"));
    });
    EXPECT_EQ(ask("/team/slow"), "new") << json;
    (void)purge(R"({"upstream": "data"})");
  }
}

TEST_F(PurgeTest, EventsDropWhatTheyName) {
  store("/team/a");
  store("/team/b");
  version_ = 2;
  const auto done = purger_.take_events(
      R"({"Records":[{"eventName":"s3:ObjectCreated:Put","s3":{"bucket":{"name":"team"},"object":{"key":"a"}}},
                     {"eventName":"s3:ObjectAccessed:Get","s3":{"bucket":{"name":"team"},"object":{"key":"b"}}}]})");
  ASSERT_TRUE(done);
  EXPECT_EQ(done.value().purged, 1u);
  EXPECT_EQ(ask("/team/a"), "v2");
  EXPECT_EQ(ask("/team/b"), "v1");
}

std::string delete_of(const std::string& target, const std::string& host, const std::string& body,
                      const std::string& fields = "") {
  return "POST " + target + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n" + fields + "\r\n" + body;
}

TEST_F(PurgeTest, ABulkDeleteDropsItsKeysUnderBothStyles) {
  for (const std::string path : {"/team/a", "/team/b%2Bc", "/team/kept"}) store(path);
  store("/a", "team.data.example");
  version_ = 2;
  const std::string body = "<Delete><Object><Key>a</Key></Object><Object><Key>b+c</Key></Object></Delete>";
  EXPECT_EQ(cache_.ask(delete_of("/team?delete", "data.example", body)).status, 200);
  EXPECT_EQ(origin_.last().body, body);
  EXPECT_EQ(ask("/team/a"), "v2");
  EXPECT_EQ(ask("/team/b%2Bc"), "v2");
  EXPECT_EQ(ask("/a", "team.data.example"), "v2");
  EXPECT_EQ(ask("/team/kept"), "v1");
  version_ = 3;
  const std::string chunked = "41\r\n" + body.substr(0, 0x41) + "\r\n";
  ASSERT_GT(body.size(), 0x41u);
  const std::string rest = body.substr(0x41);
  char size[8];
  std::snprintf(size, sizeof size, "%zx", rest.size());
  EXPECT_EQ(cache_
                .ask(delete_of("/?delete=", "team.data.example", chunked + size + "\r\n" + rest + "\r\n0\r\n\r\n",
                               "Content-Encoding: aws-chunked\r\n"))
                .status,
            200);
  EXPECT_EQ(ask("/team/a"), "v3");
}

TEST_F(PurgeTest, ABulkDeleteThatIsNotUnderstoodDropsTheBucket) {
  for (const std::string path : {"/team/a", "/other/a"}) store(path);
  version_ = 2;
  status_ = 400;
  EXPECT_EQ(cache_.ask(delete_of("/team?delete", "data.example", "no xml")).status, 400);
  EXPECT_EQ(ask("/team/a"), "v1") << "the source refused it";
  status_ = 200;
  EXPECT_EQ(cache_.ask(delete_of("/team?delete", "data.example", "no xml")).status, 200);
  EXPECT_EQ(ask("/team/a"), "v2");
  EXPECT_EQ(ask("/other/a"), "v1");
}

// Each key is looked for under all its names: nobody may make the cache look for a million.
TEST_F(PurgeTest, ABulkDeleteOfTooManyKeysDropsTheBucket) {
  for (const std::string path : {"/team/k1", "/team/other", "/x/k1"}) store(path);
  version_ = 2;
  std::string body = "<Delete>";
  for (int i = 0; i < 1001; ++i) body += "<Object><Key>k" + std::to_string(i) + "</Key></Object>";
  body += "</Delete>";
  status_ = 400;
  EXPECT_EQ(cache_.ask(delete_of("/team?delete", "data.example", body)).status, 400);
  EXPECT_EQ(ask("/team/k1"), "v1");
  status_ = 200;
  EXPECT_EQ(cache_.ask(delete_of("/team?delete", "data.example", body)).status, 200);
  EXPECT_EQ(ask("/team/k1"), "v2");
  EXPECT_EQ(ask("/team/other"), "v2");
  EXPECT_EQ(ask("/x/k1"), "v1");
}

TEST_F(PurgeTest, ABulkDeleteThatDoesNotComeWholeDropsNothing) {
  store("/team/a");
  version_ = 2;
  {
    RawClient client = cache_.connect();
    client.send("POST /?delete HTTP/1.1\r\nHost: data.example\r\nContent-Length: 100\r\n\r\nabcde");
  }
  EXPECT_TRUE(eventually([&] { return cache_.connections() == 0; }));
  EXPECT_EQ(ask("/team/a"), "v1");
  status_ = 403;
  const std::string key(2000, 'k');
  EXPECT_EQ(
      cache_.ask(delete_of("/team?delete", "data.example", "<Delete><Object><Key>" + key + "</Key></Object></Delete>"))
          .status,
      403);
  EXPECT_EQ(ask("/team/a"), "v1");
}

// All workers of the cache are at something else until release().
class BusyWorkers {
 public:
  explicit BusyWorkers(net::Workers& workers) {
    for (const Event& entered : entered_) {
      workers.start([entered, released = released_] {
        entered.set();
        released.wait();
      });
    }
    for (const Event& entered : entered_) entered.wait();
  }
  ~BusyWorkers() { release(); }
  void release() { released_.set(); }

 private:
  std::array<Event, 2> entered_;  // CacheUnderTest has two
  Event released_;
};

// Thousands of names are a worker's work: the loop goes on answering others.
TEST_F(PurgeTest, ABulkDeleteIsReadByAWorker) {
  for (const std::string path : {"/team/a", "/team/b"}) store(path);
  version_ = 2;
  BusyWorkers workers(cache_.workers());
  RawClient client = cache_.connect();
  client.send(delete_of("/team?delete", "data.example", "<Delete><Object><Key>a</Key></Object></Delete>"));
  ASSERT_TRUE(origin_.wait_for_count(2)) << "the objects";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(i % 2 ? "/team/a" : "/team/b"), "v1") << "the loop has dropped nothing";
  workers.release();
  EXPECT_EQ(client.read_answer().status, 200);
  EXPECT_EQ(ask("/team/a"), "v2");
  EXPECT_EQ(ask("/team/b"), "v1");
}

TEST_F(PurgeTest, ABulkDeleteForWhichThereIsNoMemoryDropsTheBucket) {
  for (const std::string path : {"/team/a", "/team/b", "/other/a"}) store(path);
  version_ = 2;
  uint64_t taken_bytes = 0;
  for (uint64_t step = 64 * 1024 * 1024; step > 0; step /= 2) {
    while (cache_.store().take_fill_memory(step)) taken_bytes += step;
  }
  const std::string body = "<Delete><Object><Key>a</Key></Object></Delete>";
  EXPECT_EQ(cache_.ask(delete_of("/team?delete", "data.example", body)).status, 200);
  cache_.store().give_fill_memory(taken_bytes);
  for (const std::string path : {"/team/a", "/team/b"}) EXPECT_EQ(ask(path), "v2");
  EXPECT_EQ(ask("/other/a"), "v1");
  version_ = 3;
  EXPECT_EQ(cache_.ask(delete_of("/team?delete", "data.example", body)).status, 200);
  EXPECT_EQ(ask("/team/a"), "v3");
  EXPECT_EQ(ask("/team/b"), "v2") << "its own memory came back";
}

// Whoever empties buckets at the same time reads the stored heads together.
TEST_F(PurgeTest, ScansForSeveralAreOne) {
  for (const std::string path : {"/team/a", "/x/b", "/y/c"}) store(path);
  version_ = 2;
  net::asio::io_context context;
  int ended = 0;
  {
    BusyWorkers workers(cache_.workers());
    for (const std::string bucket : {"/team/", "/x/", "/team/", "/z/"}) {
      cache::Store::PathPredicate matches = [bucket](const std::string& path) {
        return path.find(bucket) != std::string::npos;
      };
      net::asio::co_spawn(context, cache_.store().invalidate_if(std::move(matches)),
                          [&](std::exception_ptr) { ++ended; });
    }
    context.poll();  // until all of them wait
    EXPECT_EQ(ended, 0);
  }
  EXPECT_TRUE(eventually([&] {
    context.restart();
    context.poll();
    return ended == 4;
  }));
  EXPECT_EQ(cache_.store().scans(), 1u);
  EXPECT_EQ(ask("/team/a"), "v2");
  EXPECT_EQ(ask("/x/b"), "v2");
  EXPECT_EQ(ask("/y/c"), "v1");
}

TEST_F(PurgeTest, ABulkDeleteIsSeenBehindPercentEncoding) {
  store("/team/a");
  version_ = 2;
  const std::string body = "<Delete><Object><Key>a</Key></Object></Delete>";
  EXPECT_EQ(cache_.ask(delete_of("/team?x-id=1&%64elete", "data.example", body)).status, 200);
  EXPECT_EQ(ask("/team/a"), "v2");
}

// A browser's form names its object inside; what it says is not looked at.
TEST_F(PurgeTest, AFormUploadDropsTheBucket) {
  for (const std::string path : {"/team/a", "/other/a"}) store(path);
  store("/b", "team.data.example");
  const std::string form = "--x\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\na\r\n--x--\r\n";
  const std::string type = "Content-Type: Multipart/Form-Data; boundary=x\r\n";
  version_ = 2;
  status_ = 403;
  EXPECT_EQ(cache_.ask(delete_of("/team", "data.example", form, type)).status, 403);
  EXPECT_EQ(ask("/team/a"), "v1") << "the source refused it";
  for (const int status : {204, 303}) {
    status_ = status;
    EXPECT_EQ(cache_.ask(delete_of("/team", "data.example", form, type)).status, status);
    const std::string version = "v" + std::to_string(version_);
    EXPECT_EQ(ask("/team/a"), version);
    EXPECT_EQ(ask("/b", "team.data.example"), version);
    EXPECT_EQ(ask("/other/a"), "v1");
    ++version_;
  }
}

TEST_F(PurgeTest, AWriteInOneSpellingIsSeenInTheOthers) {
  store("/team/a%2Bb");
  store("/team/a+b");
  store("/team/a%2bb", "other.example");
  version_ = 2;
  EXPECT_EQ(cache_.ask("PUT /team/a%2bb HTTP/1.1\r\nHost: data.example\r\nContent-Length: 1\r\n\r\nx").status, 200);
  EXPECT_EQ(ask("/team/a%2Bb"), "v2");
  EXPECT_EQ(ask("/team/a+b"), "v2");
  EXPECT_EQ(ask("/team/a%2bb", "other.example"), "v2") << "the same server, by `endpoint:`";
}

TEST_F(PurgeTest, AWriteByOneStyleIsSeenByTheOther) {
  store("/team/a");
  store("/a", "team.data.example");
  version_ = 2;
  EXPECT_EQ(cache_.ask("PUT /a HTTP/1.1\r\nHost: team.data.example\r\nContent-Length: 1\r\n\r\nx").status, 200);
  EXPECT_EQ(ask("/team/a"), "v2");
  EXPECT_EQ(ask("/a", "team.data.example"), "v2");
}

}  // namespace
}  // namespace nezha::test
