// Signatures that others made hold here, and our own are the same: the examples of AWS's S3 API reference ("Signature
// Calculations for the Authorization Header", "Authenticating Requests: Using Query Parameters"), and botocore's.
#include <gtest/gtest.h>

#include "nezha/s3/sha256.h"
#include "nezha/s3/sigv4.h"
#include "test/unit/s3/aws_example.h"
#include "test/unit/s3/signed_requests.h"

namespace nezha::test {
namespace {

using s3::SignatureFault;

constexpr char kEmpty[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

struct Example {
  const char *what, *method, *target, *fields, *payload, *signed_headers, *signature;
};

constexpr Example kExamples[] = {
    {"GET Object", "GET", "/test.txt", "Range: bytes=0-9\r\n", kEmpty, "host;range;x-amz-content-sha256;x-amz-date",
     "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
    {"PUT Object", "PUT", "/test$file.text",
     "Date: Fri, 24 May 2013 00:00:00 GMT\r\nx-amz-storage-class: REDUCED_REDUNDANCY\r\n",
     "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
     "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
     "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
    {"GET Bucket Lifecycle", "GET", "/?lifecycle", "", kEmpty, "host;x-amz-content-sha256;x-amz-date",
     "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
    {"GET Bucket (List Objects)", "GET", "/?max-keys=2&prefix=J", "", kEmpty, "host;x-amz-content-sha256;x-amz-date",
     "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
};

http::RequestHead unsigned_head(const Example& example) {
  auto head = example_head(example.method, example.target, example.fields);
  if (std::string_view(example.method) == "PUT") head.framing = {http::Framing::Kind::kLength, 21};
  return head;
}

TEST(AwsExamples, Hold) {
  for (const auto& example : kExamples) {
    auto head = unsigned_head(example);
    head.fields.add("x-amz-date", "20130524T000000Z");
    head.fields.add("x-amz-content-sha256", example.payload);
    head.fields.add("Authorization", authorization(example.signed_headers, example.signature));
    EXPECT_EQ(fault_of(head, example_credentials()), SignatureFault::kNone) << example.what;
    EXPECT_EQ(fault_of(head, example_credentials("", "another")), SignatureFault::kMismatch) << example.what;
  }
}

TEST(AwsExamples, AreSignedLikewise) {
  for (const auto& example : kExamples) {
    const auto fields = sign(unsigned_head(example), example_credentials(), "us-east-1",
                             *s3::parse_payload_hash(example.payload), kSignedAt);
    EXPECT_EQ(fields.find("Authorization"), authorization(example.signed_headers, example.signature)) << example.what;
    EXPECT_EQ(fields.find("X-Amz-Date"), "20130524T000000Z");
    EXPECT_EQ(fields.find("X-Amz-Content-Sha256"), example.payload);
    EXPECT_EQ(fields.size(), 3u);
  }
  EXPECT_EQ(s3::sha256_hex("Welcome to Amazon S3."), kExamples[1].payload);
}

TEST(AwsExamples, PresignedUrlHolds) {
  const std::string target =
      "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F"
      "aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature="
      "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";
  const auto head = example_head("GET", target, "");
  const auto reading = s3::read_claim(head);
  ASSERT_EQ(reading.kind, s3::ClaimReading::Kind::kClaim);
  EXPECT_EQ(reading.claim.place, s3::SignatureClaim::Place::kQuery);
  EXPECT_EQ(reading.claim.access_key_id.get(), "AKIAIOSFODNN7EXAMPLE");
  EXPECT_EQ(reading.claim.scope.text(), "20130524/us-east-1/s3/aws4_request");
  EXPECT_EQ(reading.claim.expires, std::chrono::seconds(86'400));
  EXPECT_EQ(reading.claim.signed_at, kSignedAt);
  EXPECT_EQ(reading.claim.payload.text, "UNSIGNED-PAYLOAD");
  EXPECT_EQ(fault_of(head, example_credentials()), SignatureFault::kNone);
  EXPECT_EQ(fault_of(head, example_credentials("", "another")), SignatureFault::kMismatch);
}

http::RequestHead head_of(const SignedRequest& row) {
  std::string text(row.method);
  text.append(" ").append(row.target).append(" HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n").append(row.fields);
  if (!row.signature.empty()) {
    text += "X-Amz-Date: 20130524T000000Z\r\nAuthorization: ";
    text += authorization(row.signed_headers, row.signature, "eu-central-1") + "\r\n";
    if (row.fields.find("X-Amz-Content-SHA256") == std::string_view::npos) {
      text.append("X-Amz-Content-SHA256: ").append(kEmpty).append("\r\n");
    }
  }
  return parsed_head(text + "\r\n");
}

std::string_view token_of(const SignedRequest& row) {
  return row.what.ends_with("session token") ? kSignedRequestToken : "";
}

TEST(BotocoreRequests, Hold) {
  for (const auto& row : kSignedRequests) {
    const auto head = head_of(row);
    EXPECT_EQ(fault_of(head, example_credentials(token_of(row))), SignatureFault::kNone)
        << row.what << " " << row.target;
    EXPECT_EQ(fault_of(head, example_credentials(token_of(row), "another")), SignatureFault::kMismatch) << row.target;
  }
}

// Any change to what was signed is noticed, in each of them.
TEST(BotocoreRequests, HoldForNothingElse) {
  for (const auto& row : kSignedRequests) {
    const auto credentials = example_credentials(token_of(row));
    const auto changed = [&](auto change) {
      auto head = head_of(row);
      change(head);
      return fault_of(head, credentials);
    };
    EXPECT_EQ(changed([](auto& head) { head.method = "OPTIONS"; }), SignatureFault::kMismatch) << row.target;
    EXPECT_EQ(changed([](auto& head) { head.target.insert(1, "x"); }), SignatureFault::kMismatch) << row.target;
    EXPECT_EQ(changed([](auto& head) { head.target += head.target.find('?') == std::string::npos ? "?acl" : "&acl"; }),
              SignatureFault::kMismatch)
        << row.target;
    EXPECT_EQ(changed([](auto& head) { head.fields.set("Host", "127.0.0.1:9001"); }), SignatureFault::kMismatch);
    EXPECT_EQ(changed([](auto& head) { head.fields.add("x-amz-acl", "public-read"); }),
              SignatureFault::kHeaderNotSigned);
    EXPECT_EQ(changed([](auto& head) { head.fields.add("If-None-Match", "\"etag\""); }), SignatureFault::kNone)
        << "what is not signed may be added";
  }
}

}  // namespace
}  // namespace nezha::test
