// The chunks and the trailer of AWS's two examples of aws-chunked uploads (S3 API reference, "Transferring Payload in
// Multiple Chunks" and "Including Trailing Headers"), from the head on.
#include "nezha/s3/chunk_signature.h"

#include <gtest/gtest.h>

#include "nezha/s3/sha256.h"
#include "test/unit/s3/aws_example.h"

namespace nezha::test {
namespace {

using s3::SignatureFault;

const std::string kFirst(65'536, 'a'), kSecond(1024, 'a');

http::RequestHead upload(const std::string& fields, const std::string& signed_headers, const std::string& signature) {
  return parsed_head(
      "PUT /examplebucket/chunkObject.txt HTTP/1.1\r\nHost: s3.amazonaws.com\r\nx-amz-date: 20130524T000000Z\r\n"
      "x-amz-storage-class: REDUCED_REDUNDANCY\r\nContent-Encoding: aws-chunked\r\n"
      "x-amz-decoded-content-length: 66560\r\n" +
      fields + "Authorization: " + authorization(signed_headers, signature) + "\r\n\r\n");
}

s3::ChunkSignatures chain_of(const http::RequestHead& head, s3::PayloadHash::Kind kind) {
  const auto credentials = example_credentials();
  const auto claim = s3::read_claim(head).claim;
  EXPECT_EQ(fault_of(head, credentials), SignatureFault::kNone);
  EXPECT_EQ(claim.payload.kind, kind);
  return {s3::SigningKey(credentials.secret_key, claim.scope), claim.amz_date, claim.scope, claim.signature};
}

const http::RequestHead kChunked =
    upload("Content-Length: 66824\r\nx-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n",
           "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;"
           "x-amz-storage-class",
           "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9");

TEST(ChunkSignatures, OfTheExample) {
  auto chain = chain_of(kChunked, s3::PayloadHash::Kind::kSignedChunks);
  EXPECT_EQ(chain.chunk(s3::sha256_hex(kFirst)), "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648");
  EXPECT_EQ(chain.chunk(s3::sha256_hex(kSecond)), "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
  EXPECT_EQ(chain.chunk(s3::kEmptySha256), "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9");
}

TEST(ChunkSignatures, DependOnAllBefore) {
  auto chain = chain_of(kChunked, s3::PayloadHash::Kind::kSignedChunks);
  (void)chain.chunk(s3::sha256_hex("another"));
  EXPECT_NE(chain.chunk(s3::sha256_hex(kSecond)), "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
}

TEST(ChunkSignatures, OfTheExampleWithATrailer) {
  const auto head = upload(
      "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER\r\nx-amz-trailer: x-amz-checksum-crc32c\r\n",
      "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class;"
      "x-amz-trailer",
      "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e");
  auto chain = chain_of(head, s3::PayloadHash::Kind::kSignedChunksTrailer);
  EXPECT_EQ(chain.chunk(s3::sha256_hex(kFirst)), "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2");
  EXPECT_EQ(chain.chunk(s3::sha256_hex(kSecond)), "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7");
  EXPECT_EQ(chain.chunk(s3::kEmptySha256), "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992");
  http::Fields trailer;
  trailer.add("X-Amz-Checksum-Crc32c", " sOO8/Q== ");
  trailer.add("x-amz-trailer-signature", "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435");
  EXPECT_EQ(s3::canonical_trailer(trailer), "x-amz-checksum-crc32c:sOO8/Q==\n");
  EXPECT_EQ(chain.trailer(s3::sha256_hex(s3::canonical_trailer(trailer))), trailer[1].value);
}

TEST(ChunkSignatures, TrailersAreInOrder) {
  http::Fields trailer;
  trailer.add("x-amz-checksum-sha256", "b");
  trailer.add("x-amz-checksum-crc32", "a");
  EXPECT_EQ(s3::canonical_trailer(trailer), "x-amz-checksum-crc32:a\nx-amz-checksum-sha256:b\n");
  EXPECT_EQ(s3::canonical_trailer({}), "");
}

TEST(Sha256, InPieces) {
  s3::Sha256 hash;
  EXPECT_EQ(hash.hex(), s3::kEmptySha256);
  for (const char c : kSecond) hash.update(std::string_view(&c, 1));
  EXPECT_EQ(hash.hex(), s3::sha256_hex(kSecond));
  EXPECT_EQ(hash.hex(), s3::kEmptySha256) << "each hash begins anew";
}

TEST(SameSignature, ComparesWholeTexts) {
  EXPECT_TRUE(s3::same_signature("", ""));
  EXPECT_TRUE(s3::same_signature("ab", "ab"));
  EXPECT_FALSE(s3::same_signature("ab", "ac"));
  EXPECT_FALSE(s3::same_signature("ab", "abc"));
  EXPECT_FALSE(s3::same_signature("ab", ""));
}

}  // namespace
}  // namespace nezha::test
