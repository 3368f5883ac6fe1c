// When a well-formed signature holds: time, tokens, which fields are signed, spellings of one request, absent bodies.
#include <gtest/gtest.h>

#include <sstream>
#include <type_traits>

#include "nezha/s3/sha256.h"
#include "nezha/s3/sigv4.h"
#include "test/unit/s3/aws_example.h"

namespace nezha::test {
namespace {

using s3::SignatureFault;
using std::chrono::seconds;

void set_all(http::RequestHead& head, const http::Fields& fields) {
  fields.for_each([&](std::string_view name, std::string_view value) { head.fields.set(name, value); });
}

http::RequestHead signed_head(const std::string& target = "/k", const std::string& fields = "",
                              const s3::Credentials& credentials = example_credentials(),
                              const s3::PayloadHash& payload = {}) {
  auto head = example_head("GET", target, fields);
  set_all(head, sign(head, credentials, "us-east-1", payload, kSignedAt));
  return head;
}

// Presigned by the same rules: the signature is computed over the target without it.
http::RequestHead presigned_head(int expires_s, const std::string& names = "host", const std::string& fields = "",
                                 const std::string& more = "") {
  const std::string target =
      "/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"
      "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=" +
      std::to_string(expires_s) + "&X-Amz-SignedHeaders=" + names + more;
  auto head = example_head("GET", target, fields);
  std::string canonical =
      "GET\n/k\nX-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2F"
      "aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=" +
      std::to_string(expires_s) + more + "&X-Amz-SignedHeaders=" + names + "\n";
  canonical += "host:examplebucket.s3.amazonaws.com\n\n" + names + "\nUNSIGNED-PAYLOAD";
  const s3::CredentialScope scope{"20130524", "us-east-1"};
  const auto secret = s3::SecretKey(kSecret);
  head.target += "&X-Amz-Signature=" +
                 s3::SigningKey(secret, scope)
                     .sign("AWS4-HMAC-SHA256\n20130524T000000Z\n" + scope.text() + "\n" + s3::sha256_hex(canonical));
  return head;
}

TEST(Verify, TimeOfAuthorization) {
  const auto head = signed_head();
  const auto credentials = example_credentials();
  for (const int skew_s : {0, 1, 899, 900, -1, -900})
    EXPECT_EQ(fault_of(head, credentials, kSignedAt + seconds(skew_s)), SignatureFault::kNone) << skew_s;
  for (const int skew_s : {901, 86'400, -901, -86'400, 2'000'000'000})
    EXPECT_EQ(fault_of(head, credentials, kSignedAt + seconds(skew_s)), SignatureFault::kTimeTooSkewed) << skew_s;
}

TEST(Verify, TimeOfPresigned) {
  const auto credentials = example_credentials();
  const auto day = presigned_head(86'400);
  for (const int after_s : {0, 901, 86'400, -900})
    EXPECT_EQ(fault_of(day, credentials, kSignedAt + seconds(after_s)), SignatureFault::kNone) << after_s;
  EXPECT_EQ(fault_of(day, credentials, kSignedAt + seconds(86'401)), SignatureFault::kExpired);
  EXPECT_EQ(fault_of(day, credentials, kSignedAt - seconds(901)), SignatureFault::kNotYetValid);
  const auto week = presigned_head(604'800);
  EXPECT_EQ(fault_of(week, credentials, kSignedAt + seconds(604'800)), SignatureFault::kNone);
  EXPECT_EQ(fault_of(week, credentials, kSignedAt + seconds(604'801)), SignatureFault::kExpired);
  EXPECT_EQ(fault_of(presigned_head(0), credentials, kSignedAt + seconds(1)), SignatureFault::kExpired);
}

TEST(Verify, WrongSecretKeyIdOrRegion) {
  EXPECT_EQ(fault_of(signed_head(), example_credentials("", "x")), SignatureFault::kMismatch);
  EXPECT_EQ(fault_of(signed_head(), example_credentials("", "")), SignatureFault::kMismatch);
  auto other = example_credentials();
  other.access_key_id = s3::AccessKeyId("AKIAI44QH8DHBEXAMPLE");
  EXPECT_EQ(fault_of(signed_head(), other), SignatureFault::kUnknownAccessKeyId);
  auto head = signed_head();
  std::string moved(*head.fields.find("Authorization"));
  moved.replace(moved.find("us-east-1"), 9, "us-east-2");
  head.fields.set("Authorization", moved);
  EXPECT_EQ(fault_of(head, example_credentials()), SignatureFault::kMismatch);
}

TEST(Verify, SessionToken) {
  const auto with = signed_head("/k", "", example_credentials("token"));
  EXPECT_EQ(fault_of(with, example_credentials("token")), SignatureFault::kNone);
  EXPECT_EQ(fault_of(with, example_credentials("other")), SignatureFault::kSessionToken);
  EXPECT_EQ(fault_of(with, example_credentials("tokenn")), SignatureFault::kSessionToken);
  EXPECT_EQ(fault_of(with, example_credentials()), SignatureFault::kSessionToken);
  EXPECT_EQ(fault_of(signed_head(), example_credentials("token")), SignatureFault::kSessionToken);
  auto twice = with;
  twice.fields.add("X-Amz-Security-Token", "token");
  EXPECT_EQ(fault_of(twice, example_credentials("token")), SignatureFault::kSessionToken);
  EXPECT_EQ(fault_of(presigned_head(60), example_credentials("token")), SignatureFault::kSessionToken);
  const auto query = presigned_head(60, "host", "", "&X-Amz-Security-Token=token");
  EXPECT_EQ(fault_of(query, example_credentials("token")), SignatureFault::kNone);
  EXPECT_EQ(fault_of(query, example_credentials("other")), SignatureFault::kSessionToken);
}

TEST(Verify, FieldsThatMustBeSigned) {
  const auto credentials = example_credentials();
  auto head = signed_head("/k", "Range: bytes=0-1\r\nX-Amz-Meta-A: 1\r\n");
  EXPECT_EQ(fault_of(head, credentials), SignatureFault::kNone);
  head.fields.add("X-AMZ-Copy-Source", "other/key");
  EXPECT_EQ(fault_of(head, credentials), SignatureFault::kHeaderNotSigned);
  head = signed_head("/k", "Range: bytes=0-1\r\n");
  head.fields.remove("Range");
  EXPECT_EQ(fault_of(head, credentials), SignatureFault::kSignedHeaderAbsent);
  head.fields.set("Range", "bytes=0-2");
  EXPECT_EQ(fault_of(head, credentials), SignatureFault::kMismatch);
  EXPECT_EQ(fault_of(presigned_head(60, "range", "Range: bytes=0-1\r\n"), credentials),
            SignatureFault::kHeaderNotSigned)
      << "Host";
  EXPECT_EQ(fault_of(presigned_head(60, "host", "X-Amz-Acl: private\r\n"), credentials),
            SignatureFault::kHeaderNotSigned);
  EXPECT_EQ(fault_of(presigned_head(60, "host;range"), credentials), SignatureFault::kSignedHeaderAbsent);
}

TEST(Verify, ValuesAreCanonical) {
  const auto credentials = example_credentials();
  const auto with = [&](const std::vector<std::string>& values) {
    auto head = signed_head("/k", "X-Amz-Meta-A: b c,d\r\n");
    head.fields.remove("X-Amz-Meta-A");
    for (const auto& value : values) head.fields.add("x-amz-META-a", value);
    return fault_of(head, credentials);
  };
  EXPECT_EQ(with({"b c,d"}), SignatureFault::kNone);
  EXPECT_EQ(with({"  b   c,d  "}), SignatureFault::kNone);
  EXPECT_EQ(with({"b \t c,d"}), SignatureFault::kNone);
  EXPECT_EQ(with({"b c", " d"}), SignatureFault::kNone) << "lines of one name are joined";
  EXPECT_EQ(with({"d", "b c"}), SignatureFault::kMismatch);
  EXPECT_EQ(with({"b c, d"}), SignatureFault::kMismatch);
  EXPECT_EQ(with({"bc,d"}), SignatureFault::kMismatch);
}

TEST(Verify, SpellingsOfOneTarget) {
  struct Row {
    const char *signed_as, *sent_as;
    SignatureFault fault = SignatureFault::kNone;
  };
  constexpr auto kMismatch = SignatureFault::kMismatch;
  const Row rows[] = {
      {"/a%2Bb//c%20d%252F%C3%A9", "/a+b//c%20d%252F%c3%a9"},
      {"/a%2Bb//c%20d%252F%C3%A9", "/%61%2bb//c%20d%252F\xc3\xa9"},
      {"/a/b", "/a%2Fb"},
      {"/a/b", "/a//b", kMismatch},
      {"/a/b", "/a/./b", kMismatch},
      {"/b", "/a/../b", kMismatch},
      {"/a%20b", "/a+b", kMismatch},
      {"/a%252Fb", "/a%2Fb", kMismatch},
      {"/a%252Fb", "/a%252fb", kMismatch},
      {"/a", "/A", kMismatch},
      {"/a", "/a/", kMismatch},
      {"/a", "/a?"},
      {"/a?acl", "/a?acl="},
      {"/a?b=1&a=2", "/a?a=2&&b=1&"},
      {"/a?b=%7E", "/a?b=~"},
      {"/a?b=c%20d", "/a?b=c+d"},
      {"/a?b=c%2Bd", "/a?b=c+d", kMismatch},
      {"/a?b=c%2Fd", "/a?b=c/d"},
      {"/a?b==", "/a?b=%3D"},
      {"/a?b=1&b=2", "/a?b=2&b=1"},
      {"/a?b=1", "/a?b=1&b=1", kMismatch},
      {"/a?b=1&c=2", "/a?b=1%26c=2", kMismatch},
      {"/a?b=1", "/a?B=1", kMismatch},
      {"/a", "http://examplebucket.s3.amazonaws.com/a"},
      {"/?b", "HTTPS://examplebucket.s3.amazonaws.com?b"},
      {"/a", "http://other.s3.amazonaws.com/a", kMismatch},
  };
  for (const auto& row : rows) {
    auto head = signed_head(row.signed_as);
    head.target = row.sent_as;
    EXPECT_EQ(fault_of(head, example_credentials()), row.fault) << row.signed_as << " sent as " << row.sent_as;
  }
}

TEST(Verify, RefusesTargetsThatCannotBeDecoded) {
  const auto head = signed_head();
  const auto claim = s3::read_claim(head).claim;
  auto other = head;
  other.target = "/k?a=%";
  EXPECT_EQ(s3::verify(other, claim, example_credentials(), kSignedAt).fault, SignatureFault::kUriMalformed);
}

TEST(Verify, HashOfNoBody) {
  const auto credentials = example_credentials();
  const auto hash = [](std::string_view text) { return *s3::parse_payload_hash(text); };
  EXPECT_EQ(fault_of(signed_head("/k", "", credentials, hash(s3::kEmptySha256)), credentials), SignatureFault::kNone);
  const auto some = hash(s3::sha256_hex("hello"));
  EXPECT_EQ(fault_of(signed_head("/k", "", credentials, some), credentials), SignatureFault::kContentSha256Mismatch);
  EXPECT_EQ(fault_of(signed_head("/k", "Content-Length: 0\r\n", credentials, some), credentials),
            SignatureFault::kContentSha256Mismatch);
  EXPECT_EQ(fault_of(signed_head("/k", "Content-Length: 5\r\n", credentials, some), credentials), SignatureFault::kNone)
      << "the caller compares it with what arrives";
}

TEST(Verify, KeysCanBeKept) {
  const auto head = signed_head();
  const auto claim = s3::read_claim(head).claim;
  const auto credentials = example_credentials();
  const s3::SigningKey key(credentials.secret_key, claim.scope);
  EXPECT_TRUE(s3::verify(head, claim, credentials, key, kSignedAt).valid());
  const s3::SigningKey yesterday(credentials.secret_key, {"20130523", "us-east-1"});
  EXPECT_EQ(s3::verify(head, claim, credentials, yesterday, kSignedAt).fault, SignatureFault::kMismatch);
}

TEST(Verify, NothingIsValidByDefault) {
  EXPECT_FALSE(s3::Verdict{}.valid());
  EXPECT_EQ(s3::ClaimReading{}.kind, s3::ClaimReading::Kind::kNone);
}

TEST(Sign, LeavesOutWhatChangesOnTheWay) {
  auto head = example_head("GET", "/k",
                           "User-Agent: x\r\nVia: 1.1 a\r\nConnection: keep-alive\r\nExpect: 100-continue\r\n"
                           "X-Forwarded-For: 1.1.1.1\r\nAuthorization: old\r\nX-Amz-Date: old\r\nIf-Match: \"e\"\r\n");
  const auto fields = sign(head, example_credentials("t"), "us-east-1", {}, kSignedAt + std::chrono::milliseconds(999));
  EXPECT_NE(fields.find("Authorization")
                ->find("SignedHeaders=host;if-match;x-amz-content-sha256;x-amz-date;x-amz-security-token,"),
            std::string_view::npos)
      << *fields.find("Authorization");
  EXPECT_EQ(fields.find("X-Amz-Date"), "20130524T000000Z");
  EXPECT_EQ(fields.find("X-Amz-Security-Token"), "t");
  set_all(head, fields);
  EXPECT_EQ(fault_of(head, example_credentials("t")), SignatureFault::kNone);
}

TEST(S3Error, IsS3sOwn) {
  EXPECT_EQ(s3::s3_error(SignatureFault::kMismatch).code, "SignatureDoesNotMatch");
  EXPECT_EQ(s3::s3_error(SignatureFault::kMismatch).status, 403);
  EXPECT_EQ(s3::s3_error(SignatureFault::kTimeTooSkewed).code, "RequestTimeTooSkewed");
  EXPECT_EQ(s3::s3_error(SignatureFault::kQueryMalformed).code, "AuthorizationQueryParametersError");
  for (int i = 1; i <= static_cast<int>(SignatureFault::kMismatch); ++i) {
    const auto error = s3::s3_error(static_cast<SignatureFault>(i));
    EXPECT_TRUE((error.status == 400 || error.status == 403) && !error.code.empty()) << i;
  }
}

template <class T>
concept Printable = requires(std::ostringstream out, const T& value) { out << value; };

TEST(Secrets, AreNeitherPrintedNorCopied) {
  static_assert(Printable<std::string> && !Printable<s3::SecretKey> && !Printable<s3::SessionToken>);
  static_assert(!std::is_copy_constructible_v<s3::SecretKey> && !std::is_copy_assignable_v<s3::SecretKey>);
  static_assert(!std::is_convertible_v<s3::SecretKey, std::string_view>);
  static_assert(!std::is_convertible_v<std::string_view, s3::SecretKey>);
  EXPECT_EQ(testing::PrintToString(s3::SecretKey("hush")).find("hush"), std::string::npos);
  s3::SecretKey one("one"), two("two");
  one = std::move(two);
  EXPECT_EQ(one.reveal(), "two");
  EXPECT_TRUE(two.empty());
  s3::SecretKey three(std::move(one));
  EXPECT_EQ(three.reveal(), "two");
  EXPECT_TRUE(one.empty());
}

}  // namespace
}  // namespace nezha::test
