// The Secret's content: what is written is read back, empty is empty, and garbage says what is wrong with it.
#include "webhook/controller/tls_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nezha/pki/base64.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

const WallTime kNow = std::chrono::system_clock::from_time_t(1'800'000'000);
const Rotation kRotation({"nezha-webhook.nezha-system.svc"}, Lifetimes{});

TlsState fresh() { return kRotation.create(kNow, std::nullopt).value(); }

std::string why(const Json& secret) {
  const auto state = read_tls_secret(secret, kRotation);
  return state ? "(accepted)" : state.error().message;
}

TEST(TlsSecret, WhatIsWrittenIsReadBack) {
  TlsState state = fresh();
  state.next_ca = fresh().ca;
  state.previous_ca_pem = fresh().ca.certificate_pem;
  state.promoted_at = kNow;
  const Json secret = with_tls_state(Json{{"metadata", {{"resourceVersion", "5"}}}}, state);
  EXPECT_EQ(secret["metadata"]["resourceVersion"], "5");
  const auto read = read_tls_secret(secret, kRotation);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read.value(), state);
}

TEST(TlsSecret, RotationKeysGoAwayWithTheirState) {
  TlsState state = fresh();
  state.next_ca = fresh().ca;
  Json secret = with_tls_state(Json::object(), state);
  EXPECT_TRUE(secret["data"].contains("next-ca.key"));
  state.next_ca.reset();
  secret = with_tls_state(secret, state);
  EXPECT_FALSE(secret["data"].contains("next-ca.key"));
}

TEST(TlsSecret, EmptyInEveryForm) {
  for (const char* text : {"{}", R"({"data":null})", R"({"data":{}})", R"({"data":{"tls.crt":"","tls.key":""}})"}) {
    const auto read = read_tls_secret(Json::parse(text), kRotation);
    ASSERT_TRUE(read) << text;
    EXPECT_FALSE(read.value()) << text;
  }
}

TEST(TlsSecret, GarbageSaysWhatIsWrong) {
  const Json good = with_tls_state(Json::object(), fresh());
  Json bad = good;
  bad["data"].erase("ca.key");
  EXPECT_THAT(why(bad), HasSubstr("ca.key is missing"));
  bad = good;
  bad["data"]["tls.crt"] = "%%%";
  EXPECT_THAT(why(bad), HasSubstr("tls.crt: not Base64"));
  bad = good;
  bad["data"]["tls.crt"] = pki::base64_encode("garbage");
  EXPECT_THAT(why(bad), HasSubstr("tls.crt and tls.key: not a PEM certificate"));
  bad = good;
  bad["data"]["tls.key"] = with_tls_state(Json::object(), fresh())["data"]["tls.key"];
  EXPECT_THAT(why(bad), HasSubstr("tls.crt and tls.key: the key does not belong"));
  const Json other = with_tls_state(Json::object(), fresh());
  bad = good;
  bad["data"]["ca.crt"] = other["data"]["ca.crt"];
  bad["data"]["ca.key"] = other["data"]["ca.key"];
  EXPECT_THAT(why(bad), HasSubstr("tls.crt is not signed by ca.crt"));
  EXPECT_THAT(why(Json{{"data", {{"password", "eHg="}}}}), HasSubstr("ca.crt is missing"));
  EXPECT_THAT(why(Json{{"data", 7}}), HasSubstr("data is no object"));
}

TEST(TlsSecret, UnreadableRotationKeysCountAsNone) {
  TlsState state = fresh();
  state.next_ca = fresh().ca;
  state.previous_ca_pem = fresh().ca.certificate_pem;
  state.promoted_at = kNow;
  Json secret = with_tls_state(Json::object(), state);
  secret["data"]["next-ca.key"] = pki::base64_encode("garbage");
  secret["data"]["previous-ca.crt"] = 7;
  secret["data"]["promoted-at"] = pki::base64_encode("yesterday");
  const auto read = read_tls_secret(secret, kRotation);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_FALSE(read.value()->next_ca);
  EXPECT_FALSE(read.value()->previous_ca_pem);
  EXPECT_FALSE(read.value()->promoted_at);
}

}  // namespace
}  // namespace nezha::webhook
