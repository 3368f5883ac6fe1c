// Miss, then hit: every body length that matters, every framing an upstream may use, every awkward target.
#include <gtest/gtest.h>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"
#include "test/support/temporary_directory.h"

namespace nezha::test {
namespace {

constexpr size_t kMiB = 1024 * 1024;
const std::string kFresh = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\nX-Repo-Commit: abc\r\n";

enum class Upstream { kLength, kChunked };

void send_body(OriginConnection& connection, Upstream how, const std::string& body) {
  switch (how) {
    case Upstream::kLength:
      connection.send(response(200, kFresh, body));
      return;
    case Upstream::kChunked:
      connection.send(chunked_response(kFresh, body, 70'001));
      return;
  }
}

class MissThenHit : public testing::TestWithParam<std::tuple<Upstream, size_t>> {};

TEST_P(MissThenHit, IsByteExact) {
  const auto [how, size] = GetParam();
  const std::string body = pattern_bytes(size, size + 1);
  ScriptedOrigin origin(
      [&, how = how](OriginConnection& connection, const RecordedRequest&) { send_body(connection, how, body); });
  CacheUnderTest cache(origin.port());
  const ClientAnswer miss = cache.ask(get("/big"));
  EXPECT_TRUE(miss.complete());
  EXPECT_TRUE(miss.body == body);
  EXPECT_EQ(miss.cache_status(), "nezha; fwd=uri-miss; stored");
  EXPECT_FALSE(miss.has("Age"));
  ASSERT_TRUE(cache.wait_stored("/big"));

  const ClientAnswer hit = cache.ask(get("/big"));
  EXPECT_TRUE(hit.complete());
  EXPECT_TRUE(hit.body == body);
  EXPECT_EQ(hit.cache_status().substr(0, 15), "nezha; hit; ttl");
  EXPECT_TRUE(hit.has("Age"));
  EXPECT_EQ(hit.value("Content-Length"), std::to_string(size)) << "framing is made anew";
  EXPECT_FALSE(hit.has("Transfer-Encoding"));
  EXPECT_EQ(hit.value("ETag"), "\"v1\"");
  EXPECT_EQ(hit.value("X-Repo-Commit"), "abc");
  EXPECT_EQ(hit.value("Via"), "1.1 nezha");

  const ClientAnswer head = cache.ask(get("/big", "", "HEAD"), true);
  EXPECT_EQ(head.value("Content-Length"), std::to_string(size));
  EXPECT_EQ(head.value("X-Repo-Commit"), "abc");
  EXPECT_EQ(origin.count(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Bodies, MissThenHit,
                         testing::Combine(testing::Values(Upstream::kLength, Upstream::kChunked),
                                          testing::Values(0u, 1u, 4095u, kMiB - 1, kMiB, kMiB + 1, 5 * kMiB + 17)));

TEST(Delivery, WhatATierReadsAndAnswersIsMeasured) {
  const std::string body = pattern_bytes(kMiB, 3);
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kFresh, body)); });
  const TemporaryDirectory directory;
  CacheOptions options;
  options.tiers = {{config::Medium::kNvme, directory.path(), 64 * kMiB}};
  const std::string tier = "{tier=\"nvme " + directory.path() + "\"}";
  {
    CacheUnderTest cache(origin.port(), options);
    EXPECT_TRUE(cache.ask(get("/x")).complete());
    ASSERT_TRUE(cache.wait_stored("/x"));
    EXPECT_EQ(cache.metric("nezha_cache_tier_hit_bytes_total" + tier), 0);
    EXPECT_TRUE(cache.ask(get("/x")).complete());
    EXPECT_TRUE(cache.ask(get("/x", "Range: bytes=100-199\r\n")).complete());
    EXPECT_TRUE(eventually([&] { return cache.metric("nezha_cache_tier_hit_bytes_total" + tier) == kMiB + 100; }));
  }
  CacheUnderTest cache(origin.port(), options);
  EXPECT_EQ(cache.metric("nezha_cache_tier_read_seconds_count" + tier), 0);
  EXPECT_TRUE(cache.ask(get("/x")).body == body);
  EXPECT_GE(cache.metric("nezha_cache_tier_read_seconds_count" + tier), 1);
  EXPECT_GT(cache.metric("nezha_cache_tier_read_seconds_sum" + tier), 0);
}

// Such a body ends the same way when its sender dies: nothing proves it whole, so it is relayed and never stored.
TEST(Delivery, BodyThatEndsWithTheConnectionIsRelayedAndNotStored) {
  const std::string body = pattern_bytes(kMiB + 17, 9);
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send("HTTP/1.1 200 OK\r\n" + kFresh + "\r\n" + body);
    connection.close();
  });
  CacheUnderTest cache(origin.port());
  for (size_t round = 1; round <= 2; ++round) {
    const ClientAnswer answer = cache.ask(get("/big"));
    EXPECT_TRUE(answer.complete());
    EXPECT_TRUE(answer.body == body);
    EXPECT_EQ(answer.cache_status(), "nezha; fwd=uri-miss; detail=unknown-end");
    EXPECT_EQ(origin.count(), round);
  }
}

TEST(Delivery, OneByteSegmentsFromTheUpstream) {
  const std::string body = pattern_bytes(300, 1);
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.socket().send_fragmented(chunked_response(kFresh, body, 7), 1);
  });
  CacheUnderTest cache(origin.port());
  EXPECT_EQ(cache.ask(get("/x")).body, body);
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_EQ(cache.ask(get("/x")).body, body);
  EXPECT_EQ(origin.count(), 1u);
}

TEST(Delivery, OldClientsGetBodiesOfUnknownLengthUntilClose) {
  const std::string body = pattern_bytes(100'000, 2);
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(chunked_response("Cache-Control: no-store\r\n", body, 999));
  });
  CacheUnderTest cache(origin.port());
  const ClientAnswer answer = cache.ask("GET /x HTTP/1.0\r\nHost: data.example\r\n\r\n");
  EXPECT_TRUE(answer.complete());
  EXPECT_TRUE(answer.body == body);
  EXPECT_FALSE(answer.has("Transfer-Encoding"));
  EXPECT_EQ(answer.value("Connection"), "close");
}

TEST(Delivery, PipelinedRequestsAreAnsweredInOrder) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    connection.send(response(200, kFresh, "body of " + request.target()));
  });
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  std::string requests;
  for (int i = 0; i < 20; ++i) requests += get("/" + std::to_string(i % 7));
  client.send(requests);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(client.read_answer().body, "body of /" + std::to_string(i % 7));
}

TEST(Delivery, TargetsTravelByteForByte) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    connection.send(response(200, kFresh, request.target()));
  });
  CacheUnderTest cache(origin.port());
  const std::vector<std::string> targets = {"/b/a%2Bb//c%20d%252F%C3%A9",
                                            "/%2F",
                                            "//",
                                            "/a/../b",
                                            "/a/./b",
                                            "/..",
                                            "/a+b",
                                            "/a?b=c&d",
                                            "/a?",
                                            "/a?d&b=c",
                                            "/a;v=1",
                                            "/%c3%a9",
                                            "/%C3%A9",
                                            "/a%00b",
                                            "/a?x=%zz",
                                            "/a?b=//c",
                                            "/~a",
                                            "/%7Ea",
                                            "/a,b",
                                            "/a=b?c=d=e",
                                            "/a?x=1?y=2",
                                            "/\"quoted\"|{}^`",
                                            "/a\\b"};
  RawClient client = cache.connect();
  for (const auto& target : targets) {
    const ClientAnswer answer = client.ask(get(target));
    ASSERT_TRUE(answer.complete()) << target;
    if (answer.status == 400) continue;  // refused, not changed
    EXPECT_EQ(answer.body, target);
    EXPECT_EQ(origin.last().target(), target);
  }
  EXPECT_EQ(origin.count_if([](const auto& r) { return r.target() == "/%c3%a9"; }), 1u)
      << "variants are keys of their own";
}

TEST(Delivery, HostTravelsByteForByte) {
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kFresh, "x")); });
  CacheUnderTest cache(origin.port());
  for (const std::string host :
       {"data.example", "DATA.Example", "data.example:80", "data.example:8080", "data.example."}) {
    const ClientAnswer answer = cache.ask("GET /" + host + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
    EXPECT_EQ(answer.status, 200) << host;
    EXPECT_EQ(origin.last().field("Host"), host);
  }
}

TEST(Delivery, AbsoluteFormBecomesOriginForm) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "Cache-Control: no-store\r\n", "x"));
  });
  CacheUnderTest cache(origin.port());
  const std::pair<std::string, std::string> cases[] = {{"http://data.example/a/b?c=d", "/a/b?c=d"},
                                                       {"http://data.example", "/"},
                                                       {"HTTP://data.example/", "/"},
                                                       {"http://data.example?c=d", "/?c=d"},
                                                       {"http://data.example?c=/d", "/?c=/d"},
                                                       {"http://data.example:80/x", "/x"}};
  for (const auto& [absolute, wanted] : cases) {
    const ClientAnswer answer = cache.ask("GET " + absolute + " HTTP/1.1\r\nHost: other.example\r\n\r\n");
    EXPECT_EQ(answer.status, 200) << absolute;
    EXPECT_EQ(origin.last().target(), wanted) << absolute;
    EXPECT_EQ(origin.last().field("Host").value_or("").substr(0, 12), "data.example") << "its authority replaces Host";
  }
}

TEST(Delivery, HeadIsRelayedAndNeverStoredAsABody) {
  const std::string body = pattern_bytes(5000, 3);
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.method() == "HEAD")
      connection.send("HTTP/1.1 200 OK\r\n" + kFresh + "Content-Length: 5000\r\n\r\n");
    else
      connection.send(response(200, kFresh, body));
  });
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  const ClientAnswer head = client.ask(get("/x", "", "HEAD"), true);
  EXPECT_EQ(head.value("Content-Length"), "5000");
  EXPECT_EQ(client.ask(get("/x")).body, body) << "a HEAD made no empty entry";
  EXPECT_EQ(origin.count(), 2u);
}

TEST(Delivery, HopByHopFieldsStopHere) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(
        response(200, kFresh + "Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\nX-End: 2\r\n", "x"));
  });
  CacheUnderTest cache(origin.port());
  const std::string fields =
      "Connection: x-mine, keep-alive\r\nX-Mine: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n"
      "Proxy-Authorization: Basic x\r\nX-Kept: a  b\r\nAccept: */*\r\n";
  for (int i = 0; i < 2; ++i) {
    const ClientAnswer answer = cache.ask(get("/x", fields));
    for (const char* name : {"X-Hop", "Keep-Alive"}) EXPECT_FALSE(answer.has(name)) << name;
    EXPECT_EQ(answer.value("X-End"), "2");
    ASSERT_TRUE(cache.wait_stored("/x"));
  }
  const RecordedRequest seen = origin.last();
  for (const char* name : {"X-Mine", "Keep-Alive", "TE", "Upgrade", "Proxy-Authorization", "Connection"})
    EXPECT_FALSE(seen.has(name)) << name;
  EXPECT_EQ(seen.field("X-Kept"), "a  b");
  EXPECT_EQ(seen.field("Via"), "1.1 nezha");
  EXPECT_TRUE(seen.has("CDN-Loop"));
}

TEST(Delivery, InterimAnswersAreRelayed) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n");
    connection.send(response(200, kFresh, "x"));
  });
  CacheUnderTest cache(origin.port());
  const ClientAnswer answer = cache.ask(get("/x"));
  EXPECT_EQ(answer.status, 200);
  ASSERT_EQ(answer.interims.size(), 2u);
  EXPECT_NE(answer.interims[0].find("Link: </a>"), std::string::npos);
  const ClientAnswer old = cache.ask("GET /y HTTP/1.0\r\nHost: data.example\r\n\r\n");
  EXPECT_TRUE(old.interims.empty()) << "HTTP/1.0 knows none";
}

// What is about one request or one client stays unstored whatever lifetime it claims.
TEST(Delivery, AnswersAboutOneRequestAreNeverStored) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    connection.send(response(std::stoi(request.target().substr(1)), kFresh, "e"));
  });
  CacheUnderTest cache(origin.port());
  for (const int status : {401, 407, 412, 416, 429, 431}) {
    for (int i = 0; i < 2; ++i) {
      const ClientAnswer answer = cache.ask(get("/" + std::to_string(status)));
      EXPECT_EQ(answer.status, status);
      EXPECT_EQ(answer.body, "e");
    }
  }
  EXPECT_EQ(origin.count(), 12u);
}

TEST(Delivery, ManyRequestsOnOneConnectionUseOneUpstreamConnection) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "Cache-Control: no-store\r\n", "x"));
  });
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(client.ask(get("/x")).body, "x");
  EXPECT_EQ(origin.last().connection, 0u);
}

TEST(Delivery, APooledConnectionThatDiedIsReplaced) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "Cache-Control: no-store\r\n", "x"));
  });
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(client.ask(get("/x")).status, 200);
    origin.drop_connections();
  }
}

TEST(Delivery, EqualContentLengthsReachTheClientAsOne) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(
        "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello");
  });
  CacheUnderTest cache(origin.port());
  const ClientAnswer answer = cache.ask(get("/x"));
  if (answer.status == 502) return;
  EXPECT_EQ(answer.body, "hello");
  EXPECT_EQ(answer.head.find("Content-Length"), answer.head.rfind("Content-Length"));
}

}  // namespace
}  // namespace nezha::test
