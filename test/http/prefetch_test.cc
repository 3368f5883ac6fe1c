// POST /prefetch and `writeThrough: cache`: objects are in the cache before anybody asks for them, and are as private
// there as any other.
#include "cache/prefetch/prefetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/s3_source.h"

namespace nezha::test {
namespace {

using testing::HasSubstr;

const char* const kFirstPage =
    "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
    "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><NextContinuationToken>a/b=</NextContinuationToken>"
    "<Contents><Key>train/a+b%26c</Key><Size>5</Size></Contents><Contents><Key>train/</Key><Size>0</Size></Contents>"
    "</ListBucketResult>";
const char* const kLastPage =
    "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
    "<Contents><Key>train/2</Key><Size>5</Size></Contents></ListBucketResult>";

class Prefetch : public testing::Test {
 protected:
  Prefetch() {
    CacheOptions options = with_freshness(config::Freshness::Mode::kTtl, 600);
    options.protocol = config::Protocol::kS3;
    options.credentials_directory = mounted_.path();
    options.write_through = true;
    source_.allow(own_);
    source_.allow(other_);
    cache_ = std::make_unique<CacheUnderTest>(origin_.port(), options);
  }

  // What S3 answers, and notes: lists and takes objects, too.
  void serve(OriginConnection& connection, const RecordedRequest& request) {
    const std::string target = request.target();
    std::lock_guard lock(mutex_);
    if (target.starts_with("/b?")) {
      const bool allowed = source_.answer(request).find(" 403 ") == std::string::npos;
      const bool first = target == "/b?encoding-type=url&list-type=2&prefix=train%2F";
      const bool last = target == "/b?continuation-token=a%2Fb%3D&encoding-type=url&list-type=2&prefix=train%2F";
      connection.send(!allowed || !(first || last) ? response(403, "", "")
                                                   : response(200, "", first ? kFirstPage : kLastPage));
    } else if (request.method() == "PUT" || request.method() == "POST") {
      source_.put(target.substr(0, target.find('?')), request.body, "\"written\"");
      connection.send(response(200, "", ""));
    } else {
      source_(connection, request);
    }
  }
  std::string ask(const KeyPair& keys, std::string_view path) { return signed_get(keys, path, cache_->clock().wall()); }
  bool ends_with(const std::string& what) {
    return eventually([&] { return cache_->prefetcher().report().find(what) != std::string::npos; });
  }
  ClientAnswer put(const std::string& target, const std::string& method = "PUT") {
    return cache_->ask(get(target, "Content-Length: 3\r\n", method) + "new");
  }

  std::mutex mutex_;
  const KeyPair own_ = key_pair("OWN"), other_ = key_pair("OTHER");
  MountedKeys mounted_{own_};
  TestClock clock_;
  S3Source source_{clock_};
  ScriptedOrigin origin_{[this](OriginConnection& connection, const RecordedRequest& got) { serve(connection, got); }};
  std::unique_ptr<CacheUnderTest> cache_;
};

TEST_F(Prefetch, BringsInAllObjectsOfAPrefix) {
  source_.put("/b/train/a%20b%26c", "first", "\"1\"");
  source_.put("/b/train/2", "other", "\"2\"");
  const auto started = cache_->prefetcher().start(R"({"bucket": "b", "prefix": "train/"})");
  ASSERT_TRUE(started) << started.error().message;
  EXPECT_EQ(started.value(), "{\"job\":1}\n");
  ASSERT_TRUE(ends_with("\"state\": \"ended\"")) << cache_->prefetcher().report();
  const std::string report = cache_->prefetcher().report();
  for (const auto part : {"\"fetched\": 2", "\"failed\": 0", "\"found\": 2", "\"bytes\": 10"})
    EXPECT_THAT(report, HasSubstr(part));
  ASSERT_TRUE(cache_->wait_stored("/b/train/a%20b%26c"));
  ASSERT_TRUE(cache_->wait_stored("/b/train/2"));
  const ClientAnswer own = cache_->ask(ask(own_, "/b/train/a%20b%26c"));
  EXPECT_EQ(own.body, "first");
  EXPECT_THAT(own.cache_status(), HasSubstr("fwd-status=304")) << "he is another than the cache itself";
  const ClientAnswer other = cache_->ask(ask(other_, "/b/train/2"));
  EXPECT_EQ(other.body, "other");
  EXPECT_THAT(other.cache_status(), HasSubstr("fwd-status=304")) << "he needs the source's word";
  EXPECT_EQ(cache_->ask(get("/b/train/2")).status, 403) << "nobody else gets a byte";
}

TEST_F(Prefetch, SaysWhatFailed) {
  ASSERT_TRUE(cache_->prefetcher().start(R"({"bucket": "b", "key": "gone"})"));
  ASSERT_TRUE(ends_with("\"state\": \"ended\""));
  EXPECT_THAT(cache_->prefetcher().report(), HasSubstr("\"error\": \"the answer was 404\""));
  ASSERT_TRUE(cache_->prefetcher().start(R"({"bucket": "b", "prefix": "elsewhere/"})"));
  EXPECT_TRUE(ends_with("\"error\": \"the listing failed: the answer was 403\""));
}

TEST_F(Prefetch, StopsAtOnce) {
  Event asked;
  origin_.set_handler([asked](OriginConnection& connection, const RecordedRequest&) {
    asked.set();
    std::string nothing;
    connection.read_some(nothing, 1);  // until the other side gives up
  });
  ASSERT_TRUE(cache_->prefetcher().start(R"({"bucket": "b", "key": "slow"})"));
  ASSERT_TRUE(cache_->prefetcher().start(R"({"bucket": "b", "prefix": "slow"})"));
  ASSERT_TRUE(asked.wait());
  const auto begun = std::chrono::steady_clock::now();
  cache_->prefetcher().stop();
  EXPECT_LT(std::chrono::steady_clock::now() - begun, kWatchdog) << "less than the time that an answer may take";
  EXPECT_FALSE(cache_->prefetcher().start(R"({"bucket": "b", "key": "more"})"));
}

TEST_F(Prefetch, WhatIsWrittenIsFetched) {
  EXPECT_EQ(put("/b/x").status, 200);
  ASSERT_TRUE(cache_->wait_stored("/b/x"));
  const ClientAnswer answer = cache_->ask(ask(own_, "/b/x"));
  EXPECT_EQ(answer.body, "new");
  EXPECT_THAT(answer.cache_status(), HasSubstr("fwd-status=304"));
  EXPECT_EQ(put("/b/y?uploadId=1", "POST").status, 200);
  EXPECT_TRUE(cache_->wait_stored("/b/y"));
}

TEST_F(Prefetch, WritesThatMakeNoObjectFetchNothing) {
  for (const auto target : {"/b/x?partNumber=1&uploadId=1", "/b/x?tagging"}) put(target);
  put("/b/x?uploads", "POST");
  EXPECT_EQ(put("/b/last").status, 200);
  ASSERT_TRUE(cache_->wait_stored("/b/last"));
  EXPECT_EQ(origin_.count_if([](const RecordedRequest& got) { return got.method() == "GET"; }), 1u);
}

}  // namespace
}  // namespace nezha::test
