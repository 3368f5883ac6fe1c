#include "cache/credentials/known_reader.h"

#include <algorithm>
#include <array>

#include "cache/classify/classify.h"
#include "nezha/base/text.h"
#include "nezha/s3/sha256.h"
#include "nezha/s3/sigv4.h"

namespace nezha::cache {
namespace {

bool is_part_of_a_signature(std::string_view name) {
  static constexpr std::array<std::string_view, 6> kParts = {"Authorization",        "X-Amz-Date",
                                                             "X-Amz-Content-Sha256", "X-Amz-Security-Token",
                                                             "X-Amz-User-Agent",     "X-Amz-Checksum-Mode"};
  return std::any_of(kParts.begin(), kParts.end(), [&](std::string_view part) { return iequals(part, name); });
}

bool is_plain(const http::Fields& fields) {
  bool plain = true;
  fields.for_each([&](std::string_view name, std::string_view) {
    if (is_part_of_a_signature(name)) return;
    if (is_credential_field(name) || iequals(name.substr(0, 6), "X-Amz-")) plain = false;
  });
  return plain;
}

// Without what an AWS SDK notes of its own work there: "m/Z,E,b", in any order, another with each kind of call.
std::string agent_of(const http::Fields& fields) {
  std::string out;
  const std::string agent = fields.joined("User-Agent");
  for (const auto word : split(agent, ' ')) {
    if (!word.starts_with("m/")) out.append(word).append(" ");
  }
  return out;
}

}  // namespace

std::optional<KnownReader> known_reader(const http::RequestHead& request, const CacheKey& key, bool tls,
                                        const KeySet& keys, WallTime now) {
  const s3::ClaimReading reading = s3::read_claim(request);
  if (reading.kind != s3::ClaimReading::Kind::kClaim) return std::nullopt;
  const s3::SignatureClaim& claim = reading.claim;
  const s3::Credentials* const credentials = keys.find(claim.access_key_id);
  if (!credentials || !s3::verify(request, claim, *credentials, now).valid()) return std::nullopt;
  // With the secret: an id that is given to somebody else is not the same reader.
  const std::string reader = claim.access_key_id.get() + ' ' + s3::sha256_hex(credentials->secret_key.reveal()) +
                             s3::sha256_hex(credentials->session_token.reveal());
  const bool hashed = claim.payload.kind == s3::PayloadHash::Kind::kSha256;
  const bool in_query = claim.place == s3::SignatureClaim::Place::kQuery;
  const auto subject =
      Approvals::subject(reader, key.path,
                         {key.query, tls ? "tls" : "", request.fields.joined("Referer"), agent_of(request.fields),
                          hashed ? "" : claim.payload.text, in_query ? claim.signature : ""});
  return KnownReader{subject, is_plain(request.fields)};
}

}  // namespace nezha::cache
