#include "nezha/s3/delete_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nezha::test {
namespace {

std::vector<std::string> keys_of(std::string_view xml) {
  std::vector<std::string> out;
  const auto keys = s3::parse_delete_request(xml);
  if (!keys) return {"error"};
  for (const auto& key : keys.value()) out.push_back(key.get());
  return out;
}

TEST(DeleteRequest, NamesKeys) {
  using testing::ElementsAre;
  const std::string xmlns = " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"";
  EXPECT_THAT(keys_of("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Delete" + xmlns +
                      "><Object><Key>a/b</Key></Object>\n<Object><Key>c d</Key><VersionId>7</VersionId></Object>"
                      "<Quiet>true</Quiet></Delete>"),
              ElementsAre("a/b", "c d"));
  EXPECT_THAT(keys_of("<s3:Delete xmlns:s3=\"x\"><s3:Object><s3:Key>k</s3:Key></s3:Object></s3:Delete>"),
              ElementsAre("k"));
  EXPECT_THAT(keys_of("<Delete><Object><Key>&lt;a&amp;b&gt;&#x41;</Key></Object></Delete>"), ElementsAre("<a&b>A"));
  EXPECT_THAT(keys_of("<Delete><Object><Key><![CDATA[a<b]]></Key></Object></Delete>"), ElementsAre("a<b"));
  EXPECT_THAT(keys_of("<Delete><Object><Key>  x </Key></Object></Delete>"), ElementsAre("  x "));
  EXPECT_THAT(keys_of("<Delete><Object><Key>a<!-- -->b<![CDATA[c]]>d</Key></Object></Delete>"), ElementsAre("abcd"));
  EXPECT_THAT(keys_of("<Delete/>"), ElementsAre());
}

TEST(DeleteRequest, RefusesWhatIsNone) {
  for (const std::string body : {"", "no xml", "<Delete>", "<Tagging/>", "<Delete><Object>", "{\"a\":1}"})
    EXPECT_FALSE(s3::parse_delete_request(body)) << body;
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  EXPECT_FALSE(s3::parse_delete_request(deep));
}

TEST(DeleteRequest, KnowsNoEntitiesOfItsOwn) {
  const std::string bomb =
      "<!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;\"><!ENTITY f SYSTEM \"file:///etc/passwd\">]>"
      "<Delete><Object><Key>&b;&f;</Key></Object></Delete>";
  for (const auto& key : keys_of(bomb)) EXPECT_EQ(key.find("root"), std::string::npos);
}

TEST(AwsChunked, Decodes) {
  const auto decoded = s3::decode_aws_chunked(
      "5;chunk-signature=abc\r\nhello\r\n6\r\n world\r\n0;chunk-signature=def\r\nx-amz-checksum-crc32:AAAA\r\n\r\n");
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded.value(), "hello world");
  EXPECT_EQ(s3::decode_aws_chunked("0\r\n\r\n").value(), "");
  for (const std::string body : {"", "hello", "5\r\nhell", "5\r\nhello", "x\r\n\r\n", "fffffffffffffffff\r\n",
                                 "ffffffffffffff\r\nx\r\n", ";a=b\r\n", "5\r\nhelloXX0\r\n\r\n"})
    EXPECT_FALSE(s3::decode_aws_chunked(body)) << body;
}

}  // namespace
}  // namespace nezha::test
