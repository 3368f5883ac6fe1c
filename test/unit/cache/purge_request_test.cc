#include "cache/purge/purge_request.h"

#include <gtest/gtest.h>

namespace nezha::test {
namespace {

using cache::parse_purge_request;
using Scope = cache::PurgeRequest::Scope;

TEST(PurgeRequest, Forms) {
  struct Case {
    std::string json;
    Scope scope;
    std::string name, text;
    bool prefix;
  };
  const std::vector<Case> table = {
      {R"({"upstream": "team-s3"})", Scope::kUpstream, "team-s3", "", true},
      {R"({"host": "Data.Example", "path": "/a b"})", Scope::kHost, "data.example", "/a b", false},
      {R"({"host": "data.example", "prefix": "/a/"})", Scope::kHost, "data.example", "/a/", true},
      {R"({"bucket": "team", "key": "k"})", Scope::kBucket, "team", "k", false},
      {R"({"prefix": "train/", "bucket": "team"})", Scope::kBucket, "team", "train/", true},
  };
  for (const auto& each : table) {
    const auto got = parse_purge_request(each.json);
    ASSERT_TRUE(got) << each.json;
    EXPECT_EQ(got.value().scope, each.scope);
    EXPECT_EQ(got.value().name, each.name);
    EXPECT_EQ(got.value().text, each.text);
    EXPECT_EQ(got.value().prefix, each.prefix);
  }
}

TEST(PurgeRequest, RefusesWhatCouldMeanSomethingElse) {
  for (const std::string json :
       {"", "{}", "[]", "x", R"({"host": "h"})", R"({"bucket": "b"})", R"({"host": "h", "path": "x"})",
        R"({"host": "h", "path": "/x", "prefix": "/"})", R"({"upstream": "u", "key": "k"})", R"({"upstream": ""})",
        R"({"upstream": 7})", R"({"hosts": "h", "path": "/x"})", R"({"host": "h", "prefix": ["/"]})"}) {
    const auto got = parse_purge_request(json);
    ASSERT_FALSE(got) << json;
    EXPECT_EQ(got.error().remedy, Remedy::kFixInput);
    EXPECT_NE(got.error().message.find("upstream"), std::string::npos) << "it says what can be written";
  }
}

}  // namespace
}  // namespace nezha::test
