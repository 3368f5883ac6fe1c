// What a 304 from the source proves, and what it does not.
#include <gtest/gtest.h>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

using Mode = config::Freshness::Mode;

TEST(Confirmation, A304ThatNamesAnotherEntityTagConfirmsNothing) {  // RFC 9111 §4.3.4
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.field("If-None-Match") == "\"v1\"")
      return void(connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"v2\"\r\n\r\n"));
    connection.send(response(200, "ETag: \"v1\"\r\n", "old bytes"));
  });
  CacheUnderTest cache(origin.port(), with_freshness(Mode::kRevalidate));
  EXPECT_EQ(cache.ask(get("/x")).body, "old bytes");
  ASSERT_TRUE(cache.wait_stored("/x"));
  cache.ask(get("/x"));
  EXPECT_EQ(origin.count(), 3u) << "it is asked again, without a condition";
  EXPECT_FALSE(origin.last().field("If-None-Match") == "\"v1\"");
}

// Servers behind one name often agree on the ETag and not on Last-Modified.
TEST(Confirmation, PartsNeverGoOutAsTheWhole) {
  const std::string old_date = "Mon, 02 Jan 2023 00:00:00 GMT", new_date = "Tue, 03 Jan 2023 00:00:00 GMT";
  const std::string body = pattern_bytes(1000, 3);
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.field("If-None-Match") == "\"v1\"")
      return void(
          connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nLast-Modified: " + new_date + "\r\n\r\n"));
    connection.send(response(
        200, "ETag: \"v1\"\r\nDate: Wed, 04 Jan 2023 00:00:00 GMT\r\nLast-Modified: " + old_date + "\r\n", body));
  });
  CacheUnderTest cache(origin.port(), with_freshness(Mode::kRevalidate));
  EXPECT_EQ(cache.ask(get("/x")).body, body);
  ASSERT_TRUE(cache.wait_stored("/x"));
  const ClientAnswer part = cache.ask(get("/x", "Range: bytes=10-19\r\nIf-Range: " + old_date + "\r\n"));
  EXPECT_TRUE(part.complete());
  if (part.status == 206)
    EXPECT_EQ(part.body, body.substr(10, 10));
  else
    EXPECT_EQ(part.body, body);
}

// Whatever a service calls its token: what one reader was given is not shared unasked with the next.
class TokenField : public testing::TestWithParam<const char*> {};

TEST_P(TokenField, CountsAsCredentials) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.field(GetParam()) != "good") return void(connection.send(response(403, "", "denied")));
    connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n", "secret"));
  });
  CacheUnderTest cache(origin.port());
  EXPECT_EQ(cache.ask(get("/x", std::string(GetParam()) + ": good\r\n")).body, "secret");
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_EQ(cache.ask(get("/x")).status, 403);
}

INSTANTIATE_TEST_SUITE_P(Names, TokenField,
                         testing::Values("Authorization", "Cookie", "X-Auth-Token", "X-Api-Key", "PRIVATE-TOKEN",
                                         "JOB-TOKEN", "Deploy-Token", "X-Vault-Token", "X-JFrog-Art-Api",
                                         "X-Access-Token", "X-Goog-Api-Key"));

// The key leaves the signature out, so the bare URL finds the entry: it is asked for like any other, `public` or not.
TEST(Confirmation, WhatASignedUrlFetchedIsNotSharedWithTheBareUrl) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.target().find("Signature=") == std::string::npos)
      return void(connection.send(response(403, "", "denied")));
    connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: public, max-age=600\r\n", "secret"));
  });
  CacheUnderTest cache(origin.port());
  EXPECT_EQ(cache.ask(get("/x?Expires=9&Signature=s&Key-Pair-Id=k")).body, "secret");
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_EQ(cache.ask(get("/x")).status, 403);
}

// A field that the client names in Connection ends here: the answer was selected without it, and is stored so.
TEST(Confirmation, AnAnswerIsFiledUnderWhatTheSourceWasShown) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    const std::string accept = request.field("Accept").value_or("");
    connection.send(
        response(200, "Vary: Accept\r\nCache-Control: max-age=600\r\nETag: \"" + accept + "\"\r\n", "for:" + accept));
  });
  CacheUnderTest cache(origin.port());
  EXPECT_EQ(cache.ask(get("/x", "Connection: Accept\r\nAccept: json\r\n")).body, "for:");
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_EQ(cache.ask(get("/x", "Accept: json\r\n")).body, "for:json");
  EXPECT_EQ(cache.ask(get("/x")).body, "for:");
}

// proxy-revalidate forbids stale answers and, unlike must-revalidate, shares nothing (RFC 9111 §3.5).
TEST(Confirmation, ProxyRevalidateDoesNotShareWhatAnAuthorisedReaderGot) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.field("Authorization") != "good") return void(connection.send(response(403, "", "denied")));
    connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: max-age=600, proxy-revalidate\r\n", "secret"));
  });
  CacheUnderTest cache(origin.port());
  EXPECT_EQ(cache.ask(get("/x", "Authorization: good\r\n")).body, "secret");
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_EQ(cache.ask(get("/x")).status, 403);
}

}  // namespace
}  // namespace nezha::test
