// The tests' own patch applier, on the examples of RFC 6902 appendix A in our words.
#include "test/support/rfc6902.h"

#include <gtest/gtest.h>

namespace nezha::test {
namespace {

using Json = nlohmann::json;

struct Case {
  const char* name;
  const char* document;
  const char* patch;
  const char* result;  // null: must be refused
};
class Rfc6902 : public testing::TestWithParam<Case> {};

TEST_P(Rfc6902, AppliesOrRefuses) {
  const auto& c = GetParam();
  const Json document = Json::parse(c.document), patch = Json::parse(c.patch);
  if (!c.result)
    EXPECT_THROW(apply_rfc6902(document, patch), PatchError);
  else
    EXPECT_EQ(apply_rfc6902(document, patch), Json::parse(c.result));
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Rfc6902,
    testing::Values(
        Case{"add_member", R"({"a":1})", R"([{"op":"add","path":"/b","value":2}])", R"({"a":1,"b":2})"},
        Case{"add_replaces_member", R"({"a":1})", R"([{"op":"add","path":"/a","value":null}])", R"({"a":null})"},
        Case{"add_in_list", R"([1,3])", R"([{"op":"add","path":"/1","value":2}])", "[1,2,3]"},
        Case{"add_at_end", R"([1])", R"([{"op":"add","path":"/-","value":2}])", "[1,2]"},
        Case{"add_at_size", R"([1])", R"([{"op":"add","path":"/1","value":2}])", "[1,2]"},
        Case{"add_past_end", R"([1])", R"([{"op":"add","path":"/2","value":2}])", nullptr},
        Case{"add_to_absent_parent", R"({})", R"([{"op":"add","path":"/a/b","value":2}])", nullptr},
        Case{"add_to_null_parent", R"({"a":null})", R"([{"op":"add","path":"/a/b","value":2}])", nullptr},
        Case{"add_whole", R"({"a":1})", R"([{"op":"add","path":"","value":[]}])", "[]"},
        Case{"leading_zero", R"([1,2])", R"([{"op":"add","path":"/01","value":2}])", nullptr},
        Case{"escapes", R"({"a/b":1,"m~n":2})",
             R"([{"op":"add","path":"/a~1b","value":3},{"op":"add","path":"/m~0n","value":4}])",
             R"({"a/b":3,"m~n":4})"},
        Case{"bad_escape", R"({})", R"([{"op":"add","path":"/~2","value":3}])", nullptr},
        Case{"remove", R"({"a":1,"b":2})", R"([{"op":"remove","path":"/a"}])", R"({"b":2})"},
        Case{"remove_absent", R"({})", R"([{"op":"remove","path":"/a"}])", nullptr},
        Case{"replace_absent", R"({})", R"([{"op":"replace","path":"/a","value":1}])", nullptr},
        Case{"move", R"({"a":{"b":1},"c":[]})", R"([{"op":"move","from":"/a/b","path":"/c/-"}])",
             R"({"a":{},"c":[1]})"},
        Case{"copy", R"({"a":[1]})", R"([{"op":"copy","from":"/a","path":"/b"}])", R"({"a":[1],"b":[1]})"},
        Case{"test_fails", R"({"a":1})", R"([{"op":"test","path":"/a","value":"1"}])", nullptr},
        Case{"no_value", R"({})", R"([{"op":"add","path":"/a"}])", nullptr},
        Case{"in_sequence", R"({})", R"([{"op":"add","path":"/a","value":[]},{"op":"add","path":"/a/-","value":1}])",
             R"({"a":[1]})"}),
    [](const auto& c) { return c.param.name; });

}  // namespace
}  // namespace nezha::test
