#include "cache/credentials/approvals.h"

#include <algorithm>

#include "nezha/base/check.h"
#include "nezha/s3/sha256.h"

namespace nezha::cache {

Approvals::Approvals(size_t count_max) : shard_count_max_(std::max<size_t>(1, count_max / kShards)) {}

Approvals::Token Approvals::token(const s3::AccessKeyId& reader, bool presigned, const CacheKey& key,
                                  const std::string& etag) {
  std::string text;
  for (const std::string* part : {&reader.get(), &key.path, &key.query, &etag}) {
    text += std::to_string(part->size()) + ':';
    text += *part;
  }
  text += presigned ? 'q' : 'h';
  const std::string hash = s3::sha256_hex(text);
  Token out;
  NEZHA_CHECK(hash.size() == out.size(), "SHA-256 has 64 digits");
  std::copy(hash.begin(), hash.end(), out.begin());
  return out;
}

void Approvals::note(const Token& token, SteadyTime now) {
  Shard& shard = shards_[shard_of(token)];
  std::lock_guard lock(shard.mutex);
  if (shard.noted.size() >= shard_count_max_ && !shard.noted.contains(token)) shard.noted.clear();
  shard.noted[token] = now;
}

bool Approvals::holds(const Token& token, SteadyTime now, std::chrono::seconds age_max) const {
  const Shard& shard = shards_[shard_of(token)];
  std::lock_guard lock(shard.mutex);
  const auto at = shard.noted.find(token);
  return at != shard.noted.end() && now - at->second < age_max;
}

void Approvals::forget(const Token& token) {
  Shard& shard = shards_[shard_of(token)];
  std::lock_guard lock(shard.mutex);
  shard.noted.erase(token);
}

}  // namespace nezha::cache
