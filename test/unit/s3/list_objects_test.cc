#include "nezha/s3/list_objects.h"

#include <gtest/gtest.h>

namespace nezha::s3 {
namespace {

std::string page(const std::string& inside) { return "<ListBucketResult>" + inside + "</ListBucketResult>"; }

std::vector<std::string> keys_of(const std::string& inside) {
  std::vector<std::string> out;
  const auto parsed = parse_object_page(page(inside));
  EXPECT_TRUE(parsed) << inside;
  if (!parsed) return out;
  for (const auto& object : parsed.value().objects) out.push_back(object.key.get());
  return out;
}

TEST(ListObjects, ReadsKeysAsTheyWere) {
  const std::string contents = "<Contents><Key>a%2Bb+c%0A%25</Key><Size>7</Size></Contents>";
  EXPECT_EQ(keys_of("<EncodingType>url</EncodingType>" + contents), std::vector<std::string>{"a+b c\n%"});
  EXPECT_EQ(keys_of(contents), std::vector<std::string>{"a%2Bb+c%0A%25"});
  EXPECT_EQ(keys_of("<Contents><Key> &amp;<![CDATA[<x>]]> </Key></Contents>"), std::vector<std::string>{" &<x> "});
  EXPECT_EQ(
      keys_of(
          "<s:Contents xmlns:s='x'><s:Key>k</s:Key></s:Contents><CommonPrefixes><Prefix>p</Prefix></CommonPrefixes>"),
      std::vector<std::string>{"k"});
  EXPECT_EQ(parse_object_page(page(contents)).value().objects.front().size_bytes, 7u);
}

TEST(ListObjects, KnowsTheNextPage) {
  const std::string token = "<NextContinuationToken>1/2=</NextContinuationToken>";
  EXPECT_EQ(parse_object_page(page("<IsTruncated>true</IsTruncated>" + token)).value().continuation_token, "1/2=");
  EXPECT_EQ(parse_object_page(page("<IsTruncated>false</IsTruncated>" + token)).value().continuation_token, "");
  EXPECT_FALSE(parse_object_page(page("<IsTruncated>true</IsTruncated>")));
}

TEST(ListObjects, RefusesOtherDocuments) {
  for (const auto text : {"", "{}", "<Error/>", "<ListBucketResult>"}) EXPECT_FALSE(parse_object_page(text)) << text;
}

TEST(ListObjects, AsksInCanonicalOrder) {
  EXPECT_EQ(object_page_query("", ""), "encoding-type=url&list-type=2&prefix=");
  EXPECT_EQ(object_page_query("a/ü +", "1/2="),
            "continuation-token=1%2F2%3D&encoding-type=url&list-type=2&prefix=a%2F%C3%BC%20%2B");
}

}  // namespace
}  // namespace nezha::s3
