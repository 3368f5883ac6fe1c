#include "nezha/s3/sigv4.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>

#include "nezha/base/check.h"
#include "nezha/base/text.h"
#include "nezha/s3/sha256.h"
#include "src/s3/amz_date.h"
#include "src/s3/canonical_request.h"
#include "src/s3/percent.h"

namespace nezha::s3 {
namespace {

using Digest = std::array<unsigned char, 32>;

Digest hmac(std::string_view key, std::string_view text) {
  Digest out{};
  const auto* done = HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
                          reinterpret_cast<const unsigned char*>(text.data()), text.size(), out.data(), nullptr);
  NEZHA_CHECK(done, "OpenSSL always has HMAC-SHA256");
  return out;
}

std::string_view text_of(const Digest& digest) { return {reinterpret_cast<const char*>(digest.data()), digest.size()}; }

// Lower-case names of fields that the next hop may add, change or drop, beside Authorization itself.
constexpr std::array<std::string_view, 17> kNeverSigned = {
    "accept-encoding", "authorization",       "cache-control", "connection", "expect",         "forwarded",
    "keep-alive",      "max-forwards",        "pragma",        "te",         "trailer",        "transfer-encoding",
    "upgrade",         "proxy-authorization", "user-agent",    "via",        "x-amzn-trace-id"};

bool is_amz(std::string_view name) { return iequals(name.substr(0, 6), "x-amz-"); }

bool names(const std::vector<std::string>& signed_headers, std::string_view field) {
  return std::any_of(signed_headers.begin(), signed_headers.end(),
                     [&](const auto& name) { return iequals(name, field); });
}

Verdict check_time(const SignatureClaim& claim, WallTime now) {
  using enum SignatureFault;
  const auto age = std::chrono::floor<std::chrono::seconds>(now) - claim.signed_at;
  if (claim.place == SignatureClaim::Place::kHeader) {
    if (age > kClockSkewMax || age < -kClockSkewMax) {
      return {kTimeTooSkewed, "the request's time and ours differ by more than 15 minutes"};
    }
    return {kNone, {}};
  }
  if (age < -kClockSkewMax) return {kNotYetValid, "the presigned request is not yet valid"};
  if (age > claim.expires) return {kExpired, "the presigned request has expired"};
  return {kNone, {}};
}

Verdict check_session_token(const http::RequestHead& head, const Target& target, const SignatureClaim& claim,
                            const Credentials& credentials) {
  constexpr std::string_view kName = "X-Amz-Security-Token";
  std::string_view sent;
  size_t count = head.fields.count(kName);
  if (count > 0) sent = trim(*head.fields.find(kName));
  for (const auto& parameter : target.query) {
    if (claim.place != SignatureClaim::Place::kQuery || !iequals(parameter.name, kName)) continue;
    sent = parameter.value;
    ++count;
  }
  if (count <= 1 && same_signature(sent, credentials.session_token.reveal())) return {SignatureFault::kNone, {}};
  return {SignatureFault::kSessionToken, "X-Amz-Security-Token is not that of the access key id"};
}

Verdict check_signed_headers(const http::RequestHead& head, const Target& target, const SignatureClaim& claim) {
  using enum SignatureFault;
  if (!names(claim.signed_headers, "host")) return {kHeaderNotSigned, "Host is not signed"};
  for (size_t i = 0; i < head.fields.size(); ++i) {
    const auto name = head.fields[i].name;
    if (is_amz(name) && !names(claim.signed_headers, name)) return {kHeaderNotSigned, "a field x-amz-* is not signed"};
  }
  for (const auto& name : claim.signed_headers) {
    const bool by_target = name == "host" && !target.authority.empty();
    if (!by_target && !head.fields.has(name)) return {kSignedHeaderAbsent, "a field of SignedHeaders is missing"};
  }
  return {kNone, {}};
}

Verdict check_payload(const http::RequestHead& head, const SignatureClaim& claim) {
  const bool no_body = head.framing.kind == http::Framing::Kind::kNone ||
                       (head.framing.kind == http::Framing::Kind::kLength && head.framing.length_bytes == 0);
  if (!no_body || claim.payload.kind != PayloadHash::Kind::kSha256) return {SignatureFault::kNone, {}};
  if (iequals(claim.payload.text, kEmptySha256)) return {SignatureFault::kNone, {}};
  return {SignatureFault::kContentSha256Mismatch, "X-Amz-Content-Sha256 is not the hash of an empty body"};
}

// Everything that needs no key.
Verdict check_claim(const http::RequestHead& head, const Target& target, const SignatureClaim& claim,
                    const Credentials& credentials, WallTime now) {
  if (claim.access_key_id != credentials.access_key_id) {
    return {SignatureFault::kUnknownAccessKeyId, "the access key id is not known"};
  }
  if (const auto verdict = check_time(claim, now); !verdict.valid()) return verdict;
  if (const auto verdict = check_session_token(head, target, claim, credentials); !verdict.valid()) return verdict;
  if (const auto verdict = check_signed_headers(head, target, claim); !verdict.valid()) return verdict;
  return check_payload(head, claim);
}

std::vector<std::string> names_to_sign(const http::Fields& fields) {
  std::vector<std::string> out;
  fields.for_each([&](std::string_view field, std::string_view) {
    auto name = to_lower(field);
    const bool never = std::find(kNeverSigned.begin(), kNeverSigned.end(), name) != kNeverSigned.end();
    if (!never && !name.starts_with("proxy-") && !name.starts_with("x-forwarded-")) out.push_back(std::move(name));
  });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace

S3Error s3_error(SignatureFault fault) {
  switch (fault) {
    case SignatureFault::kHeaderMalformed:
      return {400, "AuthorizationHeaderMalformed"};
    case SignatureFault::kQueryMalformed:
      return {400, "AuthorizationQueryParametersError"};
    case SignatureFault::kUriMalformed:
      return {400, "InvalidURI"};
    case SignatureFault::kContentSha256Missing:
      return {400, "InvalidRequest"};
    case SignatureFault::kTwoSignatures:
    case SignatureFault::kContentSha256Malformed:
      return {400, "InvalidArgument"};
    case SignatureFault::kContentSha256Mismatch:
      return {400, "XAmzContentSHA256Mismatch"};
    case SignatureFault::kSessionToken:
      return {400, "InvalidToken"};
    case SignatureFault::kUnknownAccessKeyId:
      return {403, "InvalidAccessKeyId"};
    case SignatureFault::kTimeTooSkewed:
      return {403, "RequestTimeTooSkewed"};
    case SignatureFault::kNotYetValid:
    case SignatureFault::kExpired:
    case SignatureFault::kHeaderNotSigned:
    case SignatureFault::kSignedHeaderAbsent:
      return {403, "AccessDenied"};
    case SignatureFault::kMismatch:
      return {403, "SignatureDoesNotMatch"};
    case SignatureFault::kNone:
      break;
  }
  NEZHA_CHECK(false, "a valid signature is no error");
  return {};
}

SigningKey::SigningKey(const SecretKey& secret, const CredentialScope& scope) {
  std::string first;
  first.reserve(4 + secret.reveal().size());  // a longer text would leave a copy behind
  first.append("AWS4").append(secret.reveal());
  bytes_ = hmac(first, scope.date);
  OPENSSL_cleanse(first.data(), first.size());
  for (const std::string_view part :
       {std::string_view(scope.region), std::string_view(scope.service), std::string_view("aws4_request")}) {
    bytes_ = hmac(text_of(bytes_), part);
  }
}

SigningKey::~SigningKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

std::string SigningKey::sign(std::string_view string_to_sign) const {
  return to_hex(hmac(text_of(bytes_), string_to_sign));
}

bool same_signature(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Verdict verify(const http::RequestHead& head, const SignatureClaim& claim, const Credentials& credentials,
               WallTime now) {
  return verify(head, claim, credentials, SigningKey(credentials.secret_key, claim.scope), now);
}

Verdict verify(const http::RequestHead& head, const SignatureClaim& claim, const Credentials& credentials,
               const SigningKey& key, WallTime now) {
  const auto target = split_target(head.target);
  if (!target || !target->decodable) return {SignatureFault::kUriMalformed, "the request's target cannot be decoded"};
  if (const auto verdict = check_claim(head, *target, claim, credentials, now); !verdict.valid()) return verdict;
  const bool presigned = claim.place == SignatureClaim::Place::kQuery;
  const std::string canonical = canonical_request(head, *target, presigned, claim.signed_headers, claim.payload.text);
  const std::string right = key.sign(string_to_sign(claim.amz_date, claim.scope.text(), canonical));
  if (!same_signature(right, claim.signature)) {
    return {SignatureFault::kMismatch, "the signature is not the one that the secret makes of this request"};
  }
  return {SignatureFault::kNone, {}};
}

http::Fields sign(const http::RequestHead& head, const Credentials& credentials, std::string_view region,
                  const PayloadHash& payload, WallTime now) {
  const std::string amz_date = format_amz_date(std::chrono::floor<std::chrono::seconds>(now));
  const CredentialScope scope{amz_date.substr(0, 8), std::string(region)};
  http::Fields added;
  added.add("X-Amz-Date", amz_date);
  added.add("X-Amz-Content-Sha256", payload.text);
  if (!credentials.session_token.empty()) added.add("X-Amz-Security-Token", credentials.session_token.reveal());

  http::RequestHead sent = head;
  added.for_each([&](std::string_view name, std::string_view value) { sent.fields.set(name, value); });
  const auto target = split_target(sent.target);
  NEZHA_CHECK(target && target->decodable && sent.fields.has("Host"), "what is signed can be sent");
  const auto signed_headers = names_to_sign(sent.fields);
  const auto canonical = canonical_request(sent, *target, false, signed_headers, payload.text);
  const SigningKey key(credentials.secret_key, scope);
  added.add("Authorization", "AWS4-HMAC-SHA256 Credential=" + credentials.access_key_id.get() + '/' + scope.text() +
                                 ", SignedHeaders=" + joined_names(signed_headers) +
                                 ", Signature=" + key.sign(string_to_sign(amz_date, scope.text(), canonical)));
  return added;
}

}  // namespace nezha::s3
