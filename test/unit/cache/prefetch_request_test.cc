#include "cache/prefetch/prefetch_request.h"

#include <gtest/gtest.h>

#include "nezha/config/parse.h"

namespace nezha::cache {
namespace {

TEST(PrefetchRequest, TakesKeysAndPrefixes) {
  const auto key = parse_prefetch_request(R"({"bucket": "b", "key": "a b", "host": "S3.example"})");
  ASSERT_TRUE(key);
  EXPECT_EQ(key.value().text, "a b");
  EXPECT_FALSE(key.value().prefix);
  EXPECT_EQ(key.value().host, "s3.example");
  const auto whole = parse_prefetch_request(R"({"bucket": "b", "prefix": ""})");
  ASSERT_TRUE(whole);
  EXPECT_TRUE(whole.value().prefix);
}

TEST(PrefetchRequest, RefusesEverythingElse) {
  for (const auto text :
       {"", "[]", "{}", R"({"bucket": "b"})", R"({"key": "k"})", R"({"bucket": "b", "key": ""})",
        R"({"bucket": "b", "key": "k", "prefix": "p"})", R"({"bucket": "b/../c", "key": "k"})",
        R"({"bucket": "", "key": "k"})", R"({"bucket": "b", "key": 1})", R"({"bucket": "b", "key": "k", "more": ""})"})
    EXPECT_FALSE(parse_prefetch_request(text)) << text;
}

std::string place(const std::string& json, const std::string& yaml) {
  const auto request = parse_prefetch_request(json);
  const auto settings = config::parse_settings(yaml, "test");
  EXPECT_TRUE(request && settings);
  const auto found = place_of_bucket(request.value(), settings.value());
  if (!found) return found.error().message;
  return (found.value().tls ? "https://" : "http://") + found.value().host + found.value().path;
}

TEST(PrefetchRequest, FindsTheBucketsPlace) {
  const std::string public_one = "upstreams:\n- {name: p, protocol: s3, hosts: [p.example]}\n";
  const std::string one =
      public_one + "- {name: a, protocol: s3, hosts: [s3.example, own.s3.example], credentialsSecretRef: {name: k}}\n";
  const std::string two = one +
                          "- {name: b, protocol: s3, hosts: [b.example], tls: intercept, credentialsSecretRef: {name: "
                          "k}}\n";
  EXPECT_EQ(place(R"({"bucket": "x", "key": "k"})", public_one),
            "no upstream has keys to read with; add credentialsSecretRef to one");
  EXPECT_EQ(place(R"({"bucket": "x", "key": "k"})", one), "http://s3.example/x/");
  EXPECT_EQ(place(R"({"bucket": "own", "key": "k"})", two), "http://own.s3.example/");
  EXPECT_EQ(place(R"({"bucket": "x", "key": "k"})", two),
            "several upstreams have keys; name one by a \"host\" of its own");
  EXPECT_EQ(place(R"({"bucket": "x", "key": "k", "host": "b.example"})", two), "https://b.example/x/");
  EXPECT_EQ(place(R"({"bucket": "own", "key": "k", "host": "s3.example"})", two), "http://s3.example/own/");
  EXPECT_EQ(place(R"({"bucket": "x", "key": "k", "host": "p.example"})", two),
            "\"p.example\" is no host of an upstream with keys");
}

}  // namespace
}  // namespace nezha::cache
