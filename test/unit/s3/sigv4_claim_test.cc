// What is read of a signature, and what is refused: every form of Authorization and of presigned parameters that is
// none, hostile ones included.
#include <gtest/gtest.h>

#include "nezha/s3/sigv4.h"
#include "test/unit/s3/aws_example.h"

namespace nezha::test {
namespace {

using s3::SignatureFault;
using Kind = s3::ClaimReading::Kind;

const std::string kSignature(64, 'a');
const std::string kHash = "X-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n";
const std::string kDate = "X-Amz-Date: 20130524T000000Z\r\n";
const std::string kCredential = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";

s3::ClaimReading read(const std::string& fields, const std::string& target = "/k") {
  return s3::read_claim(example_head("GET", target, fields));
}

s3::ClaimReading read_authorization(const std::string& value) {
  http::RequestHead head = example_head("GET", "/k", kDate + kHash);
  head.fields.add("Authorization", value);
  return s3::read_claim(head);
}

std::string parts(const std::string& credential = kCredential, const std::string& names = "host",
                  const std::string& signature = kSignature) {
  return "AWS4-HMAC-SHA256 Credential=" + credential + ",SignedHeaders=" + names + ",Signature=" + signature;
}

TEST(ReadClaim, Authorization) {
  for (const std::string& value : {
           parts(kCredential, "host;x-amz-date"),
           "AWS4-HMAC-SHA256 Credential=" + kCredential + ", SignedHeaders=host;x-amz-date, Signature=" + kSignature,
           "  AWS4-HMAC-SHA256 \t Credential = " + kCredential +
               "  ,\tSignedHeaders= host;x-amz-date ,  Signature=" + kSignature + "  ",
           "AWS4-HMAC-SHA256 Signature=" + kSignature + ",Credential=" + kCredential +
               ",,SignedHeaders=host;x-amz-date,",
       }) {
    const auto reading = read_authorization(value);
    ASSERT_EQ(reading.kind, Kind::kClaim) << value;
    EXPECT_EQ(reading.claim.place, s3::SignatureClaim::Place::kHeader);
    EXPECT_EQ(reading.claim.access_key_id.get(), "AKIAIOSFODNN7EXAMPLE");
    EXPECT_EQ(reading.claim.scope, (s3::CredentialScope{"20130524", "us-east-1", "s3"}));
    EXPECT_EQ(reading.claim.amz_date, "20130524T000000Z");
    EXPECT_EQ(reading.claim.signed_at, kSignedAt);
    EXPECT_EQ(reading.claim.signed_headers, (std::vector<std::string>{"host", "x-amz-date"}));
    EXPECT_EQ(reading.claim.signature, kSignature);
  }
  const auto slashes = read_authorization(parts("team/a/20130524/us-east-1/s3/aws4_request"));
  EXPECT_EQ(slashes.claim.access_key_id.get(), "team/a") << "an access key id may hold slashes";
}

TEST(ReadClaim, NoneAndUnsupported) {
  EXPECT_EQ(read("").kind, Kind::kNone);
  EXPECT_EQ(read("", "/k?X-Amz-Date=20130524T000000Z&versionId=1&Signature=x").kind, Kind::kNone);
  for (const std::string value :
       {"AWS AKIAIOSFODNN7EXAMPLE:frJIUN8DYpKDtOLCwo//yllqDzg=", "Basic YTpi", "Bearer x", "",
        "AWS4-ECDSA-P256-SHA256 Credential=A/20130524/s3/aws4_request, SignedHeaders=host, Signature=30",
        "aws4-hmac-sha256 Credential=A", "AWS4-HMAC-SHA256Credential=A", "AWS4-HMAC-SHA512 Credential=A"}) {
    EXPECT_EQ(read("Authorization: " + value + "\r\n").kind, Kind::kUnsupported) << value;
  }
  EXPECT_EQ(read_authorization(parts("A/20130524/us-east-1/sts/aws4_request")).kind, Kind::kUnsupported);
  EXPECT_EQ(read("", "/k?AWSAccessKeyId=A&Signature=b&Expires=1").kind, Kind::kUnsupported);
}

TEST(ReadClaim, RefusesAuthorization) {
  const std::string id = "AKIAIOSFODNN7EXAMPLE", rest = ",SignedHeaders=host,Signature=" + kSignature;
  for (const std::string& value : {
           std::string("AWS4-HMAC-SHA256"),
           std::string("AWS4-HMAC-SHA256 "),
           "AWS4-HMAC-SHA256 " + kCredential,
           "AWS4-HMAC-SHA256 Credential=" + rest,
           "AWS4-HMAC-SHA256 Credential=" + kCredential + ",Signature=" + kSignature,
           "AWS4-HMAC-SHA256 Credential=" + kCredential + ",SignedHeaders=host",
           "AWS4-HMAC-SHA256 Credential=" + kCredential + " SignedHeaders=host Signature=" + kSignature,
           parts() + ",Signature=" + std::string(64, 'b'),
           parts() + ",Else=1",
           parts(id),
           parts(id + "/20130524/us-east-1/s3"),
           parts(id + "/20130524/us-east-1/s3/aws4_reques"),
           parts("/20130524/us-east-1/s3/aws4_request"),
           parts(id + "/20130524//s3/aws4_request"),
           parts(id + "/20130525/us-east-1/s3/aws4_request"),
           parts(id + "/2013052/us-east-1/s3/aws4_request"),
           parts(id + "//us-east-1/s3/aws4_request"),
           parts("A B/20130524/us-east-1/s3/aws4_request"),
           parts("\xc3\xa9/20130524/us-east-1/s3/aws4_request"),
           parts(kCredential, ";"),
           parts(kCredential, "host;"),
           parts(kCredential, "host;host"),
           parts(kCredential, "Host"),
           parts(kCredential, "host range"),
           parts(kCredential, "host", kSignature + "a"),
           parts(kCredential, "host", std::string(63, 'a')),
           parts(kCredential, "host", std::string(64, 'A')),
           parts(kCredential, "host", std::string(64, 'g')),
           parts(std::string(60'000, '/')),
           parts(kCredential, std::string(60'000, ';')),
           "AWS4-HMAC-SHA256 " + std::string(60'000, ','),
           "AWS4-HMAC-SHA256 " + std::string(60'000, '='),
       }) {
    const auto reading = read_authorization(value);
    EXPECT_EQ(reading.kind, Kind::kMalformed) << value.substr(0, 200);
    EXPECT_EQ(reading.refusal.fault, SignatureFault::kHeaderMalformed) << value.substr(0, 200);
    EXPECT_FALSE(reading.refusal.reason.empty());
  }
}

TEST(ReadClaim, DateBesideAuthorization) {
  const std::string line = "Authorization: " + parts() + "\r\n" + kHash;
  EXPECT_EQ(read(line + "Date: Fri, 24 May 2013 00:00:00 GMT\r\n").claim.amz_date, "20130524T000000Z");
  EXPECT_EQ(read(line + "Date: 20130524T000000Z\r\n").claim.signed_at, kSignedAt);
  EXPECT_EQ(read(line + kDate + "Date: Sat, 25 May 2013 00:00:00 GMT\r\n").kind, Kind::kClaim) << "X-Amz-Date counts";
  for (const std::string date :
       {"", "20130525T000000Z", "20130524T000000", "20130524 000000Z", "20130524T240000Z", "20130524T006000Z",
        "20130524T000060Z", "2013-05-24T00:00:00Z", "Fri, 24 May 2013 00:00:00 GMT", "20130524T00000xZ"}) {
    EXPECT_EQ(read(line + "X-Amz-Date: " + date + "\r\n").refusal.fault, SignatureFault::kHeaderMalformed) << date;
  }
  EXPECT_EQ(read(line).refusal.fault, SignatureFault::kHeaderMalformed);
  EXPECT_EQ(read(line + kDate + kDate).refusal.fault, SignatureFault::kHeaderMalformed);
  EXPECT_EQ(read(line + "Date: yesterday\r\n").refusal.fault, SignatureFault::kHeaderMalformed);
}

TEST(ReadClaim, PayloadHashes) {
  using PayloadKind = s3::PayloadHash::Kind;
  const std::string line = "Authorization: " + parts() + "\r\n" + kDate;
  const std::pair<std::string, PayloadKind> kinds[] = {
      {"UNSIGNED-PAYLOAD", PayloadKind::kUnsigned},
      {std::string(64, '0'), PayloadKind::kSha256},
      {std::string(64, 'F'), PayloadKind::kSha256},
      {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD", PayloadKind::kSignedChunks},
      {"STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", PayloadKind::kSignedChunksTrailer},
      {"STREAMING-UNSIGNED-PAYLOAD-TRAILER", PayloadKind::kUnsignedChunksTrailer}};
  for (const auto& [text, kind] : kinds) {
    const auto reading = read(line + "x-amz-content-sha256: " + text + "\r\n");
    ASSERT_EQ(reading.kind, Kind::kClaim) << text;
    EXPECT_EQ(reading.claim.payload.kind, kind);
    EXPECT_EQ(reading.claim.payload.text, text);
  }
  EXPECT_EQ(read(line).refusal.fault, SignatureFault::kContentSha256Missing);
  for (const std::string text :
       {"", "unsigned-payload", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD", "required", "abc"}) {
    EXPECT_EQ(read(line + "x-amz-content-sha256: " + text + "\r\n").refusal.fault,
              SignatureFault::kContentSha256Malformed)
        << text;
  }
  EXPECT_EQ(read(line + kHash + kHash).refusal.fault, SignatureFault::kContentSha256Malformed);
}

TEST(ReadClaim, LimitsSignedHeaders) {
  std::string names = "h0";
  for (int i = 1; i < 256; ++i) names += ";h" + std::to_string(i);
  EXPECT_EQ(read_authorization(parts(kCredential, names)).claim.signed_headers.size(), 256u);
  EXPECT_EQ(read_authorization(parts(kCredential, names + ";h256")).kind, Kind::kMalformed);
}

// The presigned parameters, one of them by another text; "-" leaves it out.
std::string presigned(const std::string& name = "", const std::string& value = "", const std::string& more = "") {
  std::string out = "/k?";
  const std::pair<std::string, std::string> parameters[] = {
      {"X-Amz-Algorithm", "AWS4-HMAC-SHA256"}, {"X-Amz-Credential", kCredential},
      {"X-Amz-Date", "20130524T000000Z"},      {"X-Amz-Expires", "60"},
      {"X-Amz-SignedHeaders", "host"},         {"X-Amz-Signature", kSignature}};
  for (const auto& [key, usual] : parameters) {
    if (key != name) out += key + '=' + usual + '&';
    if (key == name && value != "-") out += key + '=' + value + '&';
  }
  return out + more;
}

TEST(ReadClaim, PresignedParameters) {
  EXPECT_EQ(read("", presigned()).kind, Kind::kClaim);
  EXPECT_EQ(read("", presigned("X-Amz-Expires", "604800")).claim.expires, s3::kPresignedLifeMax);
  EXPECT_EQ(read("", presigned("X-Amz-Expires", "0")).claim.expires, std::chrono::seconds(0));
  EXPECT_EQ(read("", presigned("X-Amz-Expires", "-", "x-amz-expires=7")).claim.expires, std::chrono::seconds(7));
  EXPECT_EQ(read("", presigned("X-Amz-SignedHeaders", "host%3Brange")).claim.signed_headers.size(), 2u);
  EXPECT_EQ(read("", presigned("", "", "X-Amz-Content-Sha256=" + std::string(64, '0'))).claim.payload.text,
            std::string(64, '0'));
  EXPECT_EQ(read("x-amz-content-sha256: " + std::string(64, '1') + "\r\n", presigned()).claim.payload.text,
            std::string(64, '1'));
  EXPECT_EQ(read("", presigned("X-Amz-Algorithm", "AWS4-ECDSA-P256-SHA256")).kind, Kind::kUnsupported);
  EXPECT_EQ(read("", presigned("X-Amz-Credential", "A/20130524/r/s3express/aws4_request")).kind, Kind::kUnsupported);
}

TEST(ReadClaim, RefusesPresignedParameters) {
  for (const char* name : {"X-Amz-Algorithm", "X-Amz-Credential", "X-Amz-Date", "X-Amz-Expires", "X-Amz-SignedHeaders",
                           "X-Amz-Signature"}) {
    EXPECT_EQ(read("", presigned(name, "-")).refusal.fault, SignatureFault::kQueryMalformed) << name;
    EXPECT_EQ(read("", presigned("", "", std::string(name) + "=1")).refusal.fault, SignatureFault::kQueryMalformed)
        << name << " twice";
  }
  const std::pair<const char*, const char*> wrong[] = {{"X-Amz-Expires", "604801"},
                                                       {"X-Amz-Expires", "-1"},
                                                       {"X-Amz-Expires", ""},
                                                       {"X-Amz-Expires", "1.5"},
                                                       {"X-Amz-Expires", "99999999999999999999"},
                                                       {"X-Amz-Expires", "+60"},
                                                       {"X-Amz-Date", "20130525T000000Z"},
                                                       {"X-Amz-Date", "Fri,+24+May+2013"},
                                                       {"X-Amz-Signature", "x"},
                                                       {"X-Amz-SignedHeaders", ""},
                                                       {"X-Amz-SignedHeaders", "host%0Arange"},
                                                       {"X-Amz-Credential", "A"},
                                                       {"X-Amz-Credential", "A/20130524/us%0Aeast/s3/aws4_request"},
                                                       {"X-Amz-Credential", "A%00/20130524/r/s3/aws4_request"}};
  for (const auto& [name, value] : wrong) {
    EXPECT_EQ(read("", presigned(name, value)).refusal.fault, SignatureFault::kQueryMalformed) << name << "=" << value;
  }
  EXPECT_EQ(read("", presigned("", "", "X-Amz-Security-Token=a&x-amz-security-token=b")).refusal.fault,
            SignatureFault::kQueryMalformed);
  EXPECT_EQ(read("", presigned("", "", "X-Amz-Content-Sha256=x")).refusal.fault,
            SignatureFault::kContentSha256Malformed);
}

TEST(ReadClaim, RefusesTwoSignatures) {
  const std::string line = "Authorization: " + parts() + "\r\n" + kDate + kHash;
  EXPECT_EQ(read(line + line).refusal.fault, SignatureFault::kTwoSignatures);
  EXPECT_EQ(read(line, presigned()).refusal.fault, SignatureFault::kTwoSignatures);
  EXPECT_EQ(read("Authorization: Basic YTpi\r\n", presigned()).refusal.fault, SignatureFault::kTwoSignatures);
  EXPECT_EQ(read("", presigned("", "", "AWSAccessKeyId=A")).refusal.fault, SignatureFault::kTwoSignatures);
  EXPECT_EQ(read(line, "/k?X-Amz-Signature=").refusal.fault, SignatureFault::kTwoSignatures);
}

TEST(ReadClaim, RefusesTargetsThatCannotBeDecoded) {
  const std::string line = "Authorization: " + parts() + "\r\n" + kDate + kHash;
  for (const char* target : {"/%", "/%4", "/%zz", "/a?b=%g0", "*", "ftp://host/a"}) {
    http::RequestHead head = example_head("GET", "/k", line);
    head.target = target;
    EXPECT_EQ(s3::read_claim(head).refusal.fault, SignatureFault::kUriMalformed) << target;
    head.fields.remove("Authorization");
    EXPECT_EQ(s3::read_claim(head).kind, Kind::kNone) << target;
  }
  EXPECT_EQ(read("", presigned("", "", "x=%")).refusal.fault, SignatureFault::kUriMalformed);
}

}  // namespace
}  // namespace nezha::test
