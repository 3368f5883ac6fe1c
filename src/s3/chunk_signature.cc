#include "nezha/s3/chunk_signature.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "nezha/base/text.h"
#include "nezha/s3/sha256.h"

namespace nezha::s3 {

ChunkSignatures::ChunkSignatures(SigningKey key, std::string amz_date, const CredentialScope& scope, std::string seed)
    : key_(key), date_and_scope_(std::move(amz_date) + '\n' + scope.text() + '\n'), previous_(std::move(seed)) {}

std::string ChunkSignatures::chunk(std::string_view data_sha256_hex) {
  std::string text = "AWS4-HMAC-SHA256-PAYLOAD\n" + date_and_scope_ + previous_ + '\n';
  text.append(kEmptySha256) += '\n';  // the place of the chunk's own fields, of which there are none
  previous_ = key_.sign(text.append(data_sha256_hex));
  return previous_;
}

std::string ChunkSignatures::trailer(std::string_view trailer_sha256_hex) const {
  std::string text = "AWS4-HMAC-SHA256-TRAILER\n" + date_and_scope_ + previous_ + '\n';
  return key_.sign(text.append(trailer_sha256_hex));
}

std::string canonical_trailer(const http::Fields& trailer) {
  std::vector<std::pair<std::string, std::string>> lines;
  trailer.for_each([&](std::string_view name, std::string_view value) {
    if (!iequals(name, "x-amz-trailer-signature")) lines.emplace_back(to_lower(name), trim(value));
  });
  std::stable_sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string out;
  for (const auto& [name, value] : lines) out += name + ':' + value + '\n';
  return out;
}

}  // namespace nezha::s3
