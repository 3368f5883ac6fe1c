// credentialsSecretRef: readers whose keys the cache has are served from the store without asking the source, for as
// long as the freshness mode and the source's last word allow, and nobody else is.
#include <gtest/gtest.h>

#include "cache/purge/purge.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/s3_source.h"

namespace nezha::test {
namespace {

using Mode = config::Freshness::Mode;
constexpr int kTtlS = 600;

class KnownKeys : public testing::Test {
 protected:
  explicit KnownKeys(Mode mode = Mode::kTtl) {
    CacheOptions options = with_freshness(mode, kTtlS);
    options.protocol = config::Protocol::kS3;
    options.credentials_directory = mounted_.path();
    mounted_.write(own_, reader_.id + " " + reader_.secret + "\n");
    source_.put("/b/x", "the bytes", "\"v1\"");
    source_.put("/b/y", "other bytes", "\"v1\"");
    for (const auto& keys : {own_, reader_, stranger_}) source_.allow(keys);
    cache_ = std::make_unique<CacheUnderTest>(origin_.port(), options);
  }

  std::string ask(const KeyPair& keys, std::string_view path = "/b/x", std::string_view fields = "") {
    return signed_get(keys, path, cache_->clock().wall(), fields);
  }
  // Whether the source was asked; the answer must be right, or the source's refusal.
  bool asked(const std::string& request, int status = 200) {
    const size_t before = origin_.count();
    const ClientAnswer answer = cache_->ask(request);
    EXPECT_EQ(answer.status, status);
    EXPECT_EQ(answer.body, status == 200 ? "the bytes" : "<Error/>");
    return origin_.count() > before;
  }
  void warm_up(const KeyPair& keys) {
    EXPECT_TRUE(asked(ask(keys)));
    ASSERT_TRUE(cache_->wait_stored("/b/x"));
  }

  const KeyPair own_ = key_pair("OWN"), reader_ = key_pair("READER"), stranger_ = key_pair("STRANGER");
  MountedKeys mounted_{own_};
  TestClock source_clock_;
  S3Source source_{source_clock_};
  ScriptedOrigin origin_{
      [this](OriginConnection& connection, const RecordedRequest& request) { source_(connection, request); }};
  std::unique_ptr<CacheUnderTest> cache_;
};

TEST_F(KnownKeys, AreServedWithoutAskingAgain) {
  for (const auto& keys : {own_, reader_}) {
    EXPECT_TRUE(asked(ask(keys))) << "each reader needs the source's word for himself";
    ASSERT_TRUE(cache_->wait_stored("/b/x"));
    EXPECT_FALSE(asked(ask(keys)));
    EXPECT_FALSE(asked(ask(keys)));
  }
  EXPECT_EQ(cache_->ask(ask(reader_, "/b/x", "Range: bytes=4-8\r\n")).body, "bytes");
  EXPECT_EQ(cache_->ask(signed_get(reader_, "/b/x", cache_->clock().wall(), "", "HEAD"), true).status, 200);
  EXPECT_EQ(origin_.count(), 2u);
}

TEST_F(KnownKeys, OthersAskTheSourceEachTime) {
  warm_up(own_);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(asked(ask(stranger_)));
  EXPECT_TRUE(asked(get("/b/x"), 403)) << "without a signature";
  EXPECT_TRUE(asked(ask({own_.id, "wrong"}), 403)) << "with a wrong secret";
  std::string replayed = ask(own_, "/b/y");
  replayed.replace(replayed.find("/b/y"), 4, "/b/x");
  EXPECT_TRUE(asked(replayed, 403)) << "with the signature of another path";
  EXPECT_TRUE(asked(signed_get(own_, "/b/x", cache_->clock().wall() - std::chrono::hours(1)), 403)) << "too late";
  EXPECT_FALSE(asked(ask(own_))) << "the refusals of others changed nothing";
}

TEST_F(KnownKeys, FieldsThatMayDecideTheAnswerAreTheSourcesToJudge) {
  warm_up(own_);
  for (const auto field : {"Cookie: a=b\r\n", "X-Amz-Request-Payer: requester\r\n",
                           "X-Amz-Expected-Bucket-Owner: 1\r\n", "X-Api-Key: k\r\n", "Cache-Control: no-cache\r\n"})
    EXPECT_TRUE(asked(ask(own_, "/b/x", field))) << field;
  EXPECT_FALSE(asked(ask(own_, "/b/x", "X-Amz-Checksum-Mode: DISABLED\r\nAccept: *\r\n")));
}

TEST_F(KnownKeys, ASignedUrlNeedsAWordOfItsOwn) {
  warm_up(own_);
  const std::string url = presigned_get(own_, "/b/x", cache_->clock().wall());
  EXPECT_TRUE(asked(url));
  EXPECT_FALSE(asked(url));
  EXPECT_TRUE(asked(presigned_get(own_, "/b/x", cache_->clock().wall() - std::chrono::minutes(1)))) << "another one";
  std::string forged = url;
  forged.replace(forged.find("Signature=") + 10, 4, "0000");
  EXPECT_TRUE(asked(forged, 403));
}

TEST_F(KnownKeys, AnUnknownReaderIsRefusedThoughTheKeyIsKnown) {
  source_.revoke(reader_);
  warm_up(own_);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(asked(ask(reader_), 403));
  EXPECT_FALSE(asked(ask(own_)));
}

TEST_F(KnownKeys, ARefusalEndsWhatWasAllowed) {
  warm_up(reader_);
  EXPECT_FALSE(asked(ask(reader_)));
  source_.revoke(reader_);
  EXPECT_TRUE(asked(ask(reader_, "/b/x", "Cache-Control: no-cache\r\n"), 403));
  EXPECT_TRUE(asked(ask(reader_), 403)) << "before, the source's last word was good for the ttl";
}

TEST_F(KnownKeys, AreAskedForWhereAPolicyMayLookAtMoreThanTheKey) {
  warm_up(own_);
  for (const auto field : {"Referer: elsewhere\r\n", "User-Agent: another\r\n"}) {
    EXPECT_TRUE(asked(ask(own_, "/b/x", field))) << field;
    EXPECT_FALSE(asked(ask(own_, "/b/x", field))) << field;
  }
  EXPECT_FALSE(asked(ask(own_)));
}

TEST_F(KnownKeys, ARefusalInAnyFormCounts) {
  for (const auto field : {"Cache-Control: no-store\r\n", "X-Amz-Request-Payer: requester\r\n", "User-Agent: x\r\n"}) {
    source_.allow(reader_);
    warm_up(reader_);
    EXPECT_FALSE(asked(ask(reader_)));
    source_.revoke(reader_);
    EXPECT_TRUE(asked(ask(reader_, "/b/x", field), 403));
    EXPECT_TRUE(asked(ask(reader_), 403)) << field;
  }
}

TEST_F(KnownKeys, WritesPurgesAndRightsEndWhatWasAllowed) {
  const auto write = [&](const std::string& target, const std::string& method) {
    origin_.set_handler(
        [](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, "", "")); });
    cache_->ask(get(target, "Content-Length: 0\r\n", method));
    origin_.set_handler([this](OriginConnection& connection, const RecordedRequest& got) { source_(connection, got); });
  };
  const auto log = obs::make_null_log();
  const auto metrics = obs::make_metrics();
  cache::Purger purger(cache_->store(), cache_->approvals(), cache_->clock(), cache_->routes(), {}, *log, *metrics);
  const std::vector<std::function<void()>> changes = {[&] { write("/b/x", "PUT"); }, [&] { write("/b/x?acl", "PUT"); },
                                                      [&] { write("/b?policy", "DELETE"); },
                                                      [&] { EXPECT_TRUE(purger.purge(R"({"upstream": "data"})")); }};
  for (size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    source_.allow(reader_);
    for (const auto& keys : {own_, reader_}) {
      asked(ask(keys));
      ASSERT_TRUE(cache_->wait_stored("/b/x"));
    }
    EXPECT_FALSE(asked(ask(reader_)));
    source_.revoke(reader_);
    changes[i]();
    asked(ask(own_));  // the same version again
    ASSERT_TRUE(cache_->wait_stored("/b/x"));
    EXPECT_TRUE(asked(ask(reader_), 403));
  }
}

TEST_F(KnownKeys, AKeyIdThatIsHandedOnIsAnotherReader) {
  warm_up(reader_);
  EXPECT_FALSE(asked(ask(reader_)));
  const KeyPair heir{reader_.id, "another-secret"};
  mounted_.write(own_, heir.id + " " + heir.secret);
  EXPECT_TRUE(eventually([&] { return asked(ask(reader_)); })) << "the old secret is not known any more";
  EXPECT_TRUE(asked(ask(heir), 403)) << "the source does not know the new one";
  EXPECT_TRUE(asked(ask(heir), 403));
}

TEST_F(KnownKeys, ARefusalCountsThoughNothingWasStoredThen) {
  for (const auto& keys : {own_, reader_}) warm_up(keys);
  cache_->store().purge({"data.example/b/x"});
  source_.revoke(reader_);
  EXPECT_TRUE(asked(ask(reader_), 403));
  warm_up(own_);
  EXPECT_TRUE(asked(ask(reader_), 403));
}

TEST_F(KnownKeys, TheWordIsGoodForTheTtl) {
  warm_up(reader_);
  cache_->clock().advance_steady(std::chrono::seconds(kTtlS));
  EXPECT_TRUE(asked(ask(reader_)));
  EXPECT_FALSE(asked(ask(reader_)));
}

TEST_F(KnownKeys, AnotherVersionNeedsAnotherWord) {
  warm_up(reader_);
  source_.put("/b/x", "the bytes", "\"v2\"");
  cache_->clock().advance_wall(std::chrono::seconds(kTtlS));
  source_clock_.advance_wall(std::chrono::seconds(kTtlS));
  EXPECT_TRUE(asked(ask(own_)));
  ASSERT_TRUE(eventually([&] { return !asked(ask(own_)); })) << "the new version is stored";
  EXPECT_TRUE(asked(ask(reader_)));
  EXPECT_FALSE(asked(ask(reader_)));
}

TEST_F(KnownKeys, AKeyThatIsTakenAwayIsUnknown) {
  warm_up(reader_);
  EXPECT_FALSE(asked(ask(reader_)));
  mounted_.write(own_, "");
  EXPECT_TRUE(eventually([&] { return asked(ask(reader_)); }));
  EXPECT_TRUE(asked(ask(reader_)));
  mounted_.write(own_, "one word\nbut not three of them\n");
  std::filesystem::remove_all(mounted_.path() + "/keys");
  warm_up(own_);
  EXPECT_TRUE(eventually([&] { return asked(ask(own_)); }));
}

TEST_F(KnownKeys, AreServedWhileTheSourceIsDownAndNobodyElseIs) {
  warm_up(reader_);
  origin_.set_handler([](OriginConnection& connection, const RecordedRequest&) { connection.reset(); });
  EXPECT_FALSE(asked(ask(reader_)));
  for (const auto& request : {ask(own_), ask(stranger_), get("/b/x")}) {
    const ClientAnswer answer = cache_->ask(request);
    EXPECT_EQ(answer.status, 502);
    EXPECT_EQ(answer.body.find("the bytes"), std::string::npos);
  }
}

class KnownKeysImmutable : public KnownKeys {
 protected:
  KnownKeysImmutable() : KnownKeys(Mode::kImmutable) {}
};

TEST_F(KnownKeysImmutable, TheWordIsGoodForAnHour) {
  warm_up(reader_);
  cache_->clock().advance_steady(std::chrono::seconds(3599));
  EXPECT_FALSE(asked(ask(reader_)));
  cache_->clock().advance_steady(std::chrono::seconds(1));
  EXPECT_TRUE(asked(ask(reader_)));
}

class KnownKeysRevalidate : public KnownKeys {
 protected:
  KnownKeysRevalidate() : KnownKeys(Mode::kRevalidate) {}
};

TEST_F(KnownKeysRevalidate, EveryHitIsConfirmed) {
  warm_up(reader_);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(asked(ask(reader_)));
}

}  // namespace
}  // namespace nezha::test
