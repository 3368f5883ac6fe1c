#include "nezha/k8s/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nezha::k8s {
namespace {

TEST(ParseJson, KeepsIntegersExact) {
  const auto document = parse_json(R"([9007199254740993, -9223372036854775808, 18446744073709551615])", 10);
  EXPECT_EQ(document.value()->dump(), "[9007199254740993,-9223372036854775808,18446744073709551615]");
}

TEST(ParseJson, CountsNestingOutsideStrings) {
  EXPECT_EQ(nesting_of(R"({"a":[1,{"b":"[[[[\"{{{"}]})"), 3u);
  EXPECT_EQ(nesting_of("1"), 0u);
  EXPECT_EQ(nesting_of("[][][]"), 1u);
  EXPECT_EQ(nesting_of("]]]["), 1u);
  EXPECT_EQ(nesting_of("\"\\"), 0u);
}

TEST(ParseJson, RefusesDepthBeforeBuilding) {
  const std::string deep(1'000'000, '[');
  EXPECT_FALSE(parse_json(deep, 200));
  EXPECT_TRUE(parse_json("[[]]", 2));
  EXPECT_FALSE(parse_json("[[]]", 1));
}

TEST(ParseJson, SaysWhereTheTextIsBroken) {
  const auto broken = parse_json(R"({"a":})", 10);
  ASSERT_FALSE(broken);
  EXPECT_NE(broken.error().message.find("column 6"), std::string::npos) << broken.error().message;
  EXPECT_EQ(broken.error().remedy, Remedy::kFixInput);
}

}  // namespace
}  // namespace nezha::k8s
