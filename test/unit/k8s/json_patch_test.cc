#include "nezha/k8s/json_patch.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "test/support/rfc6902.h"

namespace nezha::k8s {
namespace {

using Json = nlohmann::json;

TEST(JsonPatch, EscapesTildeBeforeSlash) {
  EXPECT_EQ(pointer_token("nezha.io/status"), "nezha.io~1status");
  EXPECT_EQ(pointer_token("~1/~"), "~01~1~0");
  EXPECT_EQ(pointer_token(""), "");
}

TEST(JsonPatch, WritesPathsByAJsonWriter) {
  EXPECT_EQ(write_patch({}), "[]");
  EXPECT_EQ(write_patch({{"/a\"b", "1"}, {"/c", "\"d\""}}),
            R"([{"op":"add","path":"/a\"b","value":1},{"op":"add","path":"/c","value":"d"}])");
}

RC_GTEST_PROP(JsonPatch, AnyKeyIsReachedByItsToken, ()) {
  std::string key;
  for (const auto part : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 6)))
    key += std::vector<std::string>{"~", "/", "0", "1", "\"", "\u00e9"}[static_cast<size_t>(part)];
  const Json object{{key, "old"}, {"other", 1}};
  const std::vector<PatchOp> ops{{'/' + pointer_token(key), "\"new\""}};
  Json expected = object;
  expected[key] = "new";
  RC_ASSERT(apply_patch(object, ops).value() == expected);
  RC_ASSERT(test::apply_rfc6902(object, Json::parse(write_patch(ops))) == expected);
}

TEST(JsonPatch, FailsWithoutThrowingWhenAnOperationDoesNotFit) {
  EXPECT_FALSE(apply_patch(Json::object(), {{"/a/b", "1"}}));
  EXPECT_FALSE(apply_patch(Json::object(), {{"no-slash", "1"}}));
}

}  // namespace
}  // namespace nezha::k8s
