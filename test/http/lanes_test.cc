// A large cold object comes over several connections at once, in parts that the cache asks for with its own keys.
#include <gtest/gtest.h>

#include <atomic>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/s3_source.h"

namespace nezha::test {
namespace {

constexpr size_t kPartBytes = 8 << 20;
constexpr size_t kSize = 4 * kPartBytes + 12'345;

bool is_lane(const RecordedRequest& request) { return request.has("If-Match"); }

class Lanes : public testing::Test {
 protected:
  Lanes() {
    CacheOptions options = with_freshness(config::Freshness::Mode::kTtl, 600);
    options.protocol = config::Protocol::kS3;
    options.tiers.front().size_bytes = 256 << 20;
    options.credentials_directory = mounted_.path();
    mounted_.write(own_, reader_.id + " " + reader_.secret);
    source_.put("/b/x", body_, "\"v1\"");
    source_.allow(own_);
    source_.allow(reader_);
    cache_ = std::make_unique<CacheUnderTest>(origin_.port(), options);
  }

  std::string request(std::string_view fields = "", std::string_view method = "GET") {
    return signed_get(reader_, "/b/x", clock_.wall(), fields, method);
  }
  size_t lanes() { return origin_.count_if(is_lane); }
  RecordedRequest parts_of_the_object() {
    return {signed_get(own_, "/b/x", clock_.wall(), "If-Match: \"v1\"\r\nRange: bytes=0-8388607\r\n"), ""};
  }
  void expect_whole(const ClientAnswer& answer) {
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.complete());
    EXPECT_TRUE(answer.body == body_) << answer.body.size();
  }
  void expect_stored_right() {
    ASSERT_TRUE(cache_->wait_stored("/b/x"));
    const ClientAnswer warm = cache_->ask(request());
    expect_whole(warm);
    EXPECT_NE(warm.cache_status().find("hit"), std::string::npos);
  }
  // What the first connection does; lanes get what the source says.
  void first_connection(std::function<void(OriginConnection&, const std::string&)> does) {
    origin_.set_handler([this, does](OriginConnection& connection, const RecordedRequest& got) {
      if (is_lane(got))
        source_(connection, got);
      else
        does(connection, source_.answer(got));
    });
  }

  const std::string body_ = pattern_bytes(kSize, 11);
  const KeyPair own_ = key_pair("OWN"), reader_ = key_pair("READER");
  MountedKeys mounted_{own_};
  TestClock clock_;
  S3Source source_{clock_};
  // Of handlers, whose threads may outlast the test's body.
  S3Source overwritten_{clock_};
  const std::string other_ = pattern_bytes(kSize, 12);
  std::atomic<int> asked_{0};
  ScriptedOrigin origin_{
      [this](OriginConnection& connection, const RecordedRequest& got) { source_(connection, got); }};
  std::unique_ptr<CacheUnderTest> cache_;
};

TEST_F(Lanes, FetchAlignedPartsOfOneVersionWithTheirOwnKeys) {
  first_connection([&](OriginConnection& connection, const std::string& answer) {
    connection.send(std::string_view(answer).substr(0, 1000));
    eventually([&] { return lanes() >= 3; });  // it is slow
    connection.send(std::string_view(answer).substr(1000));
  });
  expect_whole(cache_->ask(request()));
  expect_stored_right();
  std::set<std::string> ranges;
  for (const auto& got : origin_.requests()) {
    if (!is_lane(got)) continue;
    EXPECT_NE(got.field("Authorization")->find(own_.id), std::string::npos);
    EXPECT_EQ(got.field("If-Match"), "\"v1\"");
    EXPECT_TRUE(ranges.insert(*got.field("Range")).second) << "asked for twice";
    const std::string range = *got.field("Range");
    EXPECT_EQ(std::stoull(range.substr(6)) % kPartBytes, 0u) << range;
  }
  EXPECT_GE(ranges.size(), 3u);
  EXPECT_GE(cache_->metric("nezha_cache_fetched_parts_total"), 1);
}

TEST_F(Lanes, AFirstConnectionThatHangsIsNotWaitedForBeyondItsPart) {
  Event over;
  first_connection([&, over](OriginConnection& connection, const std::string& answer) {
    const size_t part = answer.size() - kSize + kPartBytes;
    connection.send(std::string_view(answer).substr(0, part - 1));
    eventually([&] { return cache_->metric("nezha_cache_fetched_parts_total") >= 4; });
    connection.send(std::string_view(answer).substr(part - 1, 1));
    over.wait();
  });
  expect_whole(cache_->ask(request()));
  over.set();
  expect_stored_right();
}

TEST_F(Lanes, AFirstConnectionThatBreaksIsReplaced) {
  first_connection([&](OriginConnection& connection, const std::string& answer) {
    connection.send(std::string_view(answer).substr(0, 3 << 20));
    eventually([&] { return lanes() >= 1; });
    connection.close();
  });
  expect_whole(cache_->ask(request()));
  expect_stored_right();
}

TEST_F(Lanes, ThatAreRefusedLeaveAllToTheFirstConnection) {
  source_.revoke(own_);
  expect_whole(cache_->ask(request()));
  expect_stored_right();
  EXPECT_LE(lanes(), 8u) << "nobody asks again for what is refused";
}

TEST_F(Lanes, ThatGetAnotherVersionAreNotBelieved) {
  overwritten_.allow(own_);
  overwritten_.put("/b/x", other_, "\"v2\"");
  origin_.set_handler([&](OriginConnection& connection, const RecordedRequest& got) {
    RecordedRequest unconditional = got;
    if (!is_lane(got)) return source_(connection, got);
    const bool obeys = got.field("Range")->find("=8388608-") != std::string::npos;
    std::string answer = overwritten_.answer(got);
    if (!obeys) {  // one that ignores If-Match, and one that ignores Range as well
      const size_t at = std::stoull(got.field("Range")->substr(6));
      const std::string_view part = std::string_view(other_).substr(at, kPartBytes);
      answer = at == 2 * kPartBytes
                   ? response(200, "ETag: \"v2\"\r\n", other_)
                   : response(206,
                              "ETag: \"v2\"\r\nContent-Range: bytes " + std::to_string(at) + "-" +
                                  std::to_string(at + part.size() - 1) + "/" + std::to_string(kSize) + "\r\n",
                              part);
    }
    connection.send(answer);
  });
  expect_whole(cache_->ask(request()));
  expect_stored_right();
}

TEST_F(Lanes, ThatBreakAreAskedForAgain) {
  origin_.set_handler([&](OriginConnection& connection, const RecordedRequest& got) {
    const std::string answer = source_.answer(got);
    if (!is_lane(got)) {
      connection.send(std::string_view(answer).substr(0, 1 << 20));
      eventually([&] { return asked_ >= 3; });
      connection.send(std::string_view(answer).substr(1 << 20));
    } else if (asked_ < 3) {
      // In the head, behind it, and in the middle of a piece.
      const size_t lengths[] = {10, 200, 3'333'333};
      connection.send(std::string_view(answer).substr(0, lengths[asked_++]));
      connection.reset();
    } else {
      connection.send(answer);
    }
  });
  expect_whole(cache_->ask(request()));
  expect_stored_right();
}

// A source that serves one connection at a time, one that promises and does not keep it.
TEST_F(Lanes, ThatGetNothingHoldUpNobody) {
  for (const size_t begun_bytes : {0, 100, 1000}) {
    cache_->store().purge({"data.example/b/x"});
    const size_t head_bytes = source_.answer(parts_of_the_object()).size() - kPartBytes;
    Event over;
    origin_.set_handler([&, over, begun_bytes, head_bytes](OriginConnection& connection, const RecordedRequest& got) {
      const std::string answer = source_.answer(got);
      if (!is_lane(got)) return void(connection.send(answer));
      connection.send(std::string_view(answer).substr(0, std::min(begun_bytes, head_bytes)));
      over.wait();
    });
    expect_whole(cache_->ask(request()));
    over.set();
    expect_stored_right();
  }
}

TEST_F(Lanes, OutlastASourceThatIsBusyForAWhile) {
  origin_.set_handler([&](OriginConnection& connection, const RecordedRequest& got) {
    const std::string answer = source_.answer(got);
    if (is_lane(got)) {
      const int number = asked_++;
      const bool busy = number >= 2 && number < 12;
      connection.send(busy ? response(503, "Retry-After: 1\r\n", "slow down") : answer);
    } else {
      connection.send(std::string_view(answer).substr(0, std::min<size_t>(answer.size(), 1 << 20)));
      eventually([&] { return asked_ >= 3; });
      connection.close();
    }
  });
  expect_whole(cache_->ask(request()));
}

TEST_F(Lanes, ThatAreRefusedLaterAskAsTheReader) {
  origin_.set_handler([&](OriginConnection& connection, const RecordedRequest& got) {
    const std::string answer = source_.answer(got);
    const bool own = got.field("Authorization")->find(own_.id) != std::string::npos;
    if (!is_lane(got)) {
      connection.send(std::string_view(answer).substr(0, std::min<size_t>(answer.size(), 1 << 20)));
      eventually([&] { return asked_ >= 3; });
      connection.close();
    } else {
      const bool refused = own && asked_++ >= 1;
      if (refused) eventually([&] { return cache_->metric("nezha_cache_fetched_parts_total") >= 1; });
      connection.send(refused ? response(403, "", "") : answer);
    }
  });
  expect_whole(cache_->ask(request()));
}

TEST_F(Lanes, SignForNoPortThatAClientNames) {
  CacheOptions options = with_freshness(config::Freshness::Mode::kTtl, 600);
  options.protocol = config::Protocol::kS3;
  options.credentials_directory = mounted_.path();
  options.without_endpoint = true;
  options.write_through = true;
  CacheUnderTest cache(origin_.port(), options);
  const std::string host = "Host: 127.0.0.1:" + std::to_string(origin_.port()) + "\r\n";
  for (const std::string method : {"GET", "PUT"}) {
    const size_t before = origin_.count();
    origin_.set_handler([&](OriginConnection& connection, const RecordedRequest&) {
      connection.send(response(200, "ETag: \"v1\"\r\nAccept-Ranges: bytes\r\n", body_));
    });
    cache.ask(method + " /b/x HTTP/1.1\r\n" + host + "Content-Length: 0\r\n\r\n");
    EXPECT_EQ(origin_.count(), before + 1);
  }
  for (const auto& got : origin_.requests()) EXPECT_FALSE(got.has("Authorization"));
}

TEST_F(Lanes, ThatAllFailNeverGiveAWrongByte) {
  origin_.set_handler([&](OriginConnection& connection, const RecordedRequest& got) {
    const std::string answer = source_.answer(got);
    const bool again = got.has("Range") && got.field("Authorization")->find(reader_.id) != std::string::npos;
    if (!is_lane(got) || again) {
      connection.send(answer);
    } else {
      connection.send(std::string_view(answer).substr(0, asked_++ < 3 ? 5'000'000 : 0));
      connection.close();
    }
  });
  const ClientAnswer answer = cache_->ask(request());
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(body_.starts_with(answer.body));
  EXPECT_TRUE(answer.complete() ? answer.body.size() == kSize : answer.end == ClientAnswer::End::kReset);
  origin_.set_handler([this](OriginConnection& connection, const RecordedRequest& got) { source_(connection, got); });
  expect_whole(cache_->ask(request()));
}

TEST_F(Lanes, GoOnInOrderWhenNothingCanBeStoredAnyMore) {
  Event written;
  origin_.set_handler([&, written](OriginConnection& connection, const RecordedRequest& got) {
    if (got.method() == "PUT") return void(connection.send(response(200, "", "")));
    const std::string answer = source_.answer(got);
    const size_t first = std::min<size_t>(answer.size(), 2 << 20);
    connection.send(std::string_view(answer).substr(0, first));
    written.wait();
    connection.send(std::string_view(answer).substr(first));
  });
  RawClient client = cache_->connect();
  client.send(request());
  ASSERT_TRUE(eventually([&] { return lanes() >= 3; }));
  cache_->ask(request("Content-Length: 0\r\n", "PUT"));  // what is under way must not be published
  written.set();
  const ClientAnswer answer = client.read_answer();
  expect_whole(answer);
}

TEST_F(Lanes, GoOnWhenTheClientLeaves) {
  {
    RawClient client = cache_->connect();
    client.send(request());
    EXPECT_EQ(client.read_head().status, 200);
    client.socket().reset();
  }
  expect_stored_right();
}

TEST_F(Lanes, ServeManyReadersOfOneFill) {
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) readers.emplace_back([&] { expect_whole(cache_->ask(request())); });
  for (auto& reader : readers) reader.join();
  expect_stored_right();
}

TEST_F(Lanes, AreNotForRangesWithAnEnd) {
  EXPECT_EQ(cache_->ask(request("Range: bytes=0-33554431\r\n")).body.size(), 33'554'432u);
  EXPECT_EQ(lanes(), 0u);
}

TEST_F(Lanes, FetchALargeRangeToo) {
  const ClientAnswer answer = cache_->ask(request("Range: bytes=5-\r\n"));
  EXPECT_EQ(answer.status, 206);
  EXPECT_TRUE(answer.body == body_.substr(5));
  EXPECT_GE(lanes(), 1u);
}

TEST_F(Lanes, AreNotForSmallObjects) {
  source_.put("/b/x", body_.substr(0, 2 * kPartBytes - 1), "\"v1\"");
  EXPECT_EQ(cache_->ask(request()).body.size(), 2 * kPartBytes - 1);
  EXPECT_EQ(lanes(), 0u);
}

}  // namespace
}  // namespace nezha::test
