// Data that is not everybody's: each reader is checked by the source with its own credentials, also on a warm object.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

using Mode = config::Freshness::Mode;
const std::string kSecret = "the secret bytes";
const std::string kStored = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";

// Lets in who shows the right key, by field or by signed URL, for GET alone.
void guarded(OriginConnection& connection, const RecordedRequest& request) {
  const bool by_field = request.field("Authorization") == "Key good";
  const bool by_url = request.target().find("X-Amz-Signature=good-" + request.method()) != std::string::npos;
  if (!by_field && !by_url) return void(connection.send(response(403, "X-Reason: no\r\n", "denied")));
  if (request.field("If-None-Match") == "\"v1\"")
    return void(connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n"));
  if (request.method() == "HEAD")
    return void(connection.send("HTTP/1.1 200 OK\r\n" + kStored + "Content-Length: 16\r\n\r\n"));
  connection.send(response(200, kStored, kSecret));
}

class Private : public testing::TestWithParam<Mode> {
 protected:
  ScriptedOrigin origin_{guarded};
  CacheUnderTest cache_{origin_.port(), with_freshness(GetParam(), 600)};
};

INSTANTIATE_TEST_SUITE_P(Modes, Private, testing::Values(Mode::kHttp, Mode::kTtl, Mode::kImmutable, Mode::kRevalidate));

TEST_P(Private, EveryWarmHitIsCheckedWithTheClientsOwnField) {
  const std::string good = get("/x", "Authorization: Key good\r\n");
  EXPECT_EQ(cache_.ask(good).body, kSecret);
  ASSERT_TRUE(cache_.wait_stored("/x"));
  EXPECT_EQ(cache_.ask(good).body, kSecret);
  EXPECT_EQ(origin_.count(), 2u);
  EXPECT_EQ(origin_.last().field("Authorization"), "Key good");
  EXPECT_EQ(origin_.last().field("If-None-Match"), "\"v1\"");
  const ClientAnswer wrong = cache_.ask(get("/x", "Authorization: Key revoked\r\n"));
  EXPECT_EQ(wrong.status, 403);
  EXPECT_EQ(wrong.body, "denied");
  EXPECT_EQ(wrong.value("X-Reason"), "no");
  EXPECT_EQ(origin_.last().field("Authorization"), "Key revoked");
  const ClientAnswer anonymous = cache_.ask(get("/x"));
  EXPECT_EQ(anonymous.status, 403);
  EXPECT_EQ(cache_.ask(get("/x", "Range: bytes=0-3\r\n")).status, 403);
  EXPECT_EQ(cache_.ask(get("/x", "If-None-Match: \"v1\"\r\n")).status, 403)
      << "a 304 would tell that it has not changed";
  EXPECT_EQ(cache_.ask(get("/x", "", "HEAD"), true).status, 403);
  EXPECT_EQ(cache_.ask(get("/x", "Cache-Control: only-if-cached\r\n")).status, 504);
  EXPECT_EQ(cache_.ask(good).body, kSecret) << "refusals of others changed nothing";
  EXPECT_NE(cache_.ask(good).cache_status().find("fwd-status=304"), std::string::npos);
}

TEST_P(Private, SignedUrlsAreOneObjectAndEachIsChecked) {
  const auto url = [](const std::string& signature) {
    return get(
        "/x?versionId=7&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=k&X-Amz-Date=d&X-Amz-Expires=60&"
        "X-Amz-SignedHeaders=host&X-Amz-Signature=" +
        signature);
  };
  EXPECT_EQ(cache_.ask(url("good-GET-1")).body, kSecret);
  ASSERT_TRUE(cache_.wait_stored("/x", "versionId=7"));
  const ClientAnswer other = cache_.ask(url("good-GET-2"));
  EXPECT_EQ(other.body, kSecret);
  EXPECT_NE(other.cache_status().find("fwd-status=304"), std::string::npos) << "the signature is no part of the key";
  EXPECT_EQ(cache_.ask(url("forged")).status, 403);
  EXPECT_EQ(origin_.count(), 3u);
}

TEST_P(Private, AHeadSignatureDoesNotUnlockGet) {
  const auto target = [](const std::string& signature) { return "/x?X-Amz-Signature=" + signature; };
  cache_.ask(get(target("good-GET")));
  ASSERT_TRUE(cache_.wait_stored("/x"));
  EXPECT_EQ(cache_.ask(get(target("good-HEAD"), "", "HEAD"), true).status, 200);
  EXPECT_EQ(cache_.ask(get(target("good-HEAD"))).status, 403);
  EXPECT_EQ(cache_.ask(get(target("good-HEAD"), "Range: bytes=0-0\r\n")).status, 403);
}

TEST_P(Private, ATenantWithoutPermissionGetsNoByteOfAFillUnderWay) {
  Event denied;
  origin_.set_handler([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.field("Authorization") != "Key good" || request.has("If-None-Match"))
      return guarded(connection, request);
    const std::string answer = response(200, kStored, kSecret);
    connection.send(std::string_view(answer).substr(0, answer.size() - 8));
    EXPECT_TRUE(denied.wait());
    connection.send(std::string_view(answer).substr(answer.size() - 8));
  });
  std::thread leader([&] { EXPECT_EQ(cache_.ask(get("/x", "Authorization: Key good\r\n")).body, kSecret); });
  ASSERT_TRUE(origin_.wait_for_count(1));
  for (const std::string fields : {"Authorization: Key bad\r\n", "", "Cookie: a=b\r\n"}) {
    const ClientAnswer answer = cache_.ask(get("/x", fields));
    EXPECT_EQ(answer.status, 403) << fields;
    EXPECT_EQ(answer.body, "denied");
  }
  denied.set();
  leader.join();
}

TEST_P(Private, ErrorsOfOneAreNotServedToAnother) {
  EXPECT_EQ(cache_.ask(get("/x", "Authorization: Key bad\r\n")).status, 403);
  EXPECT_EQ(cache_.ask(get("/x", "Authorization: Key good\r\n")).body, kSecret);
}

// What a policy puts in the place of a lifetime says nothing about who may read.
TEST(PrivateAnswers, BoundsOfALifetimeDoNotShareWhereAPolicyReplacesIt) {
  for (const auto mode : {Mode::kTtl, Mode::kImmutable}) {
    for (const std::string control : {"max-age=0, must-revalidate", "s-maxage=0", "no-cache, must-revalidate"}) {
      ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
        const bool good = request.field("Authorization") == "Key good";
        connection.send(good ? response(200, "ETag: \"v1\"\r\nCache-Control: " + control + "\r\n", kSecret)
                             : response(403, "", "denied"));
      });
      CacheUnderTest cache(origin.port(), with_freshness(mode, 600));
      cache.ask(get("/x", "Authorization: Key good\r\n"));
      ASSERT_TRUE(cache.wait_stored("/x"));
      EXPECT_EQ(cache.ask(get("/x")).body, "denied") << control;
    }
  }
}

TEST(PrivateAnswers, AWeakTagOrADateDoesNotTellTwoUsersApart) {
  for (const std::string validator : {"ETag: W/\"1\"\r\n", "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n"}) {
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
      const bool asks = request.has("If-None-Match") || request.has("If-Modified-Since");
      connection.send(asks ? "HTTP/1.1 304 Not Modified\r\n" + validator + "\r\n"
                           : response(200, validator, "page of " + request.field("Cookie").value_or("nobody")));
    });
    CacheUnderTest cache(origin.port());
    EXPECT_EQ(cache.ask(get("/x", "Cookie: a\r\n")).body, "page of a");
    ASSERT_TRUE(cache.wait_stored("/x"));
    EXPECT_EQ(cache.ask(get("/x", "Cookie: b\r\n")).body, "page of b") << validator;
  }
}

TEST(PrivateAnswers, WhatBecamePrivateIsNotOpenedByAReaderWithAKey) {
  std::atomic<bool> guards{false};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (guards) return guarded(connection, request);
    connection.send(response(200, kStored, kSecret));
  });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  guards = true;
  const std::string again = "Cache-Control: no-cache\r\nAuthorization: Key good\r\n";
  EXPECT_EQ(cache.ask(get("/x", again)).body, kSecret);
  EXPECT_EQ(cache.ask(get("/x")).status, 403);
  EXPECT_EQ(cache.ask(get("/x", "Authorization: Key good\r\n")).body, kSecret);
}

TEST(PrivateAnswers, A304ThatForbidsStoringIsObeyed) {
  for (const std::string fields : {"Cache-Control: private, max-age=600", "Cache-Control: no-store", "Vary: X-Lang"}) {
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
      connection.send(request.has("If-None-Match")
                          ? "HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n" + fields + "\r\n\r\n"
                          : response(200, kStored, kSecret));
    });
    CacheUnderTest cache(origin.port());
    cache.ask(get("/x"));
    ASSERT_TRUE(cache.wait_stored("/x"));
    EXPECT_EQ(cache.ask(get("/x", "Cache-Control: no-cache\r\n")).body, kSecret) << fields;
    EXPECT_EQ(cache.store().generation_count(), 0u) << fields;
  }
}

TEST(Shared, WhatTheSourceCallsPublicIsShared) {  // RFC 9111 §3.5
  for (const std::string control : {"public, max-age=600", "s-maxage=600", "max-age=600, must-revalidate"}) {
    ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
      connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: " + control + "\r\n", "open"));
    });
    CacheUnderTest cache(origin.port());
    cache.ask(get("/x", "Authorization: Key good\r\n"));
    ASSERT_TRUE(cache.wait_stored("/x"));
    EXPECT_EQ(cache.ask(get("/x")).body, "open");
    EXPECT_EQ(origin.count(), 1u) << control;
  }
}

TEST(Shared, AnAnonymousAnswerIsEverybodysAndStaysSo) {
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kStored, "open")); });
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_EQ(cache.ask(get("/x", "Authorization: Key any\r\n")).body, "open");
  EXPECT_EQ(cache.ask(get("/x")).body, "open");
}

TEST(SignedRequests, ReachTheSourceUntouched) {
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kStored, "x")); });
  CacheUnderTest cache(origin.port(), with_freshness(Mode::kRevalidate));
  const std::string fields =
      "Authorization: AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/s3/aws4_request, "
      "SignedHeaders=host;if-match;range;x-amz-date,"
      " Signature=abc\r\nIf-Match: \"v1\"\r\nRange: bytes=0-0\r\nx-amz-checksum-mode: ENABLED\r\nX-Amz-Date: "
      "20260101T000000Z\r\n"
      "Accept-Encoding: identity\r\nUser-Agent: Boto3/1\r\nX-Double:  a   b \r\n";
  cache.ask(get("/b/k%20a+b", fields));
  const std::string seen = origin.last().head;
  EXPECT_NE(seen.find("Range: bytes=0-0\r\n"), std::string::npos);
  for (const char* line : {"GET /b/k%20a+b HTTP/1.1\r\n", "Host: data.example\r\n", "If-Match: \"v1\"\r\n",
                           "x-amz-checksum-mode: ENABLED\r\n", "X-Amz-Date: 20260101T000000Z\r\n",
                           "Accept-Encoding: identity\r\n", "User-Agent: Boto3/1\r\n"}) {
    EXPECT_NE(seen.find(line), std::string::npos) << line;
  }
  EXPECT_FALSE(origin.last().has("If-None-Match"));
  EXPECT_EQ(seen.find("x-amz-", seen.find("X-Amz-Date")), std::string::npos) << "nothing of that name is added";
}

}  // namespace
}  // namespace nezha::test
