// Fuzz target: any bytes as a request head, as an Authorization field and as a query. Holds when every refusal has a
// reason and an answer, when a signature that holds covers method, target and secret, and when whatever head we sign
// ourselves is valid.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nezha/base/check.h"
#include "nezha/http/parser.h"
#include "nezha/s3/sigv4.h"
#include "src/s3/canonical_request.h"

namespace nezha::s3 {
namespace {

constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
constexpr std::chrono::sys_seconds kNow = std::chrono::sys_days(std::chrono::May / 24 / 2013);

Credentials credentials_of(std::string_view id, std::string_view secret) {
  return {AccessKeyId(std::string(id)), SecretKey(secret), SessionToken()};
}

bool is_valid(const http::RequestHead& head, const SignatureClaim& claim, std::string_view secret) {
  const auto verdict = verify(head, claim, credentials_of(claim.access_key_id.get(), secret), kNow);
  if (verdict.valid()) return true;
  NEZHA_CHECK(!verdict.reason.empty() && s3_error(verdict.fault).status >= 400, "a refusal can be answered");
  return false;
}

void check_claim(const http::RequestHead& head, const SignatureClaim& claim) {
  NEZHA_CHECK(!claim.access_key_id.get().empty() && claim.scope.service == "s3", "the claim is whole");
  NEZHA_CHECK(claim.signature.size() == 64 && claim.amz_date.size() == 16, "of the known form");
  NEZHA_CHECK(claim.expires.count() >= 0 && claim.expires <= kPresignedLifeMax, "a week at most");
  NEZHA_CHECK(!claim.signed_headers.empty(), "something is signed");
  if (!is_valid(head, claim, kSecret)) return;
  NEZHA_CHECK(!is_valid(head, claim, "another"), "the secret counts");
  auto other = head;
  other.method += 'X';
  NEZHA_CHECK(!is_valid(other, claim, kSecret), "the method counts");
  other = head;
  other.target += other.target.find('?') == std::string::npos ? "/x" : "&a=b";
  NEZHA_CHECK(!is_valid(other, claim, kSecret), "the target counts");
}

void read(const http::RequestHead& head) {
  const auto reading = read_claim(head);
  if (reading.kind == ClaimReading::Kind::kClaim) check_claim(head, reading.claim);
  if (reading.kind == ClaimReading::Kind::kMalformed) {
    NEZHA_CHECK(!reading.refusal.valid() && !reading.refusal.reason.empty(), "a refusal has a reason");
    NEZHA_CHECK(s3_error(reading.refusal.fault).status == 400, "and an answer");
  }
}

void sign_and_read(http::RequestHead head) {
  head.fields.remove("Authorization");
  head.fields.remove("X-Amz-Security-Token");
  const auto target = split_target(head.target);
  if (!head.fields.has("Host") || !target || !target->decodable) return;
  if (read_claim(head).kind != ClaimReading::Kind::kNone) return;
  const auto fields = sign(head, credentials_of("AKIAIOSFODNN7EXAMPLE", kSecret), "us-east-1", {}, kNow);
  fields.for_each([&](std::string_view name, std::string_view value) { head.fields.set(name, value); });
  const auto reading = read_claim(head);
  NEZHA_CHECK(reading.kind == ClaimReading::Kind::kClaim, "what we sign can be read");
  NEZHA_CHECK(is_valid(head, reading.claim, kSecret), "and is valid");
  check_claim(head, reading.claim);
}

}  // namespace
}  // namespace nezha::s3

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nezha;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  http::RequestHead head;
  if (http::parse_request_head(bytes, head).kind == http::HeadStep::Kind::kDone) {
    s3::read(head);
    s3::sign_and_read(head);
  }
  http::RequestHead by_hand;
  by_hand.method = "GET";
  by_hand.target = "/k";
  by_hand.fields.add("Host", "examplebucket.s3.amazonaws.com");
  by_hand.target += "?" + std::string(bytes);
  s3::read(by_hand);
  s3::sign_and_read(by_hand);
  by_hand.target = "/k";
  by_hand.fields.add("X-Amz-Date", "20130524T000000Z");
  by_hand.fields.add("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD");
  by_hand.fields.add("Authorization", bytes);
  s3::read(by_hand);
  return 0;
}
