#include "nezha/s3/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nezha::test {
namespace {

using s3::ObjectKey;
using s3::percent_decode;
using s3::spellings;

TEST(PercentDecode, Table) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", ""},         {"a/b", "a/b"},       {"a%2Bb", "a+b"},
      {"a+b", "a+b"},   {"%20%2f%2F", " //"}, {"%C3%A9", "\xc3\xa9"},
      {"100%", "100%"}, {"%4", "%4"},         {"%zz", "%zz"},
      {"%%41", "%A"},   {"%252F", "%2F"},     {"%00", std::string(1, '\0')}};
  for (const auto& [text, decoded] : table) EXPECT_EQ(percent_decode(text), decoded) << text;
}

TEST(Spellings, APlainKeyHasOne) {
  EXPECT_THAT(spellings(ObjectKey("train/part-0001_a.tar~")), testing::ElementsAre("train/part-0001_a.tar~"));
}

TEST(Spellings, AllStandForTheKey) {
  for (const std::string key :
       {"a+b//c d%2F\xc3\xa9", "x=1&y=2", "(a)!*'", "a:b@c,d;e$", "[x]{y}|^`\"<>\\", "./..", "?#"}) {
    const auto all = spellings(ObjectKey(key));
    EXPECT_GE(all.size(), 1u);
    for (const auto& spelling : all) {
      EXPECT_EQ(percent_decode(spelling), key) << spelling;
      EXPECT_EQ(spelling.find_first_of("?# "), std::string::npos) << "it would end the path";
    }
  }
}

// What clients were seen to write for these keys.
TEST(Spellings, ThoseOfRealClients) {
  EXPECT_THAT(spellings(ObjectKey("a+b//c d%2F\xc3\xa9")), testing::Contains("a%2Bb//c%20d%252F%C3%A9"));
  EXPECT_THAT(spellings(ObjectKey("a+b//c d%2F\xc3\xa9")), testing::Contains("a%2bb//c%20d%252F%c3%a9"));
  EXPECT_THAT(spellings(ObjectKey("day=1/a+b")), testing::Contains("day=1/a+b"));
  EXPECT_THAT(spellings(ObjectKey("it's(1)*")), testing::Contains("it's(1)*"));
}

}  // namespace
}  // namespace nezha::test
