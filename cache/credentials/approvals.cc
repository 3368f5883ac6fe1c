#include "cache/credentials/approvals.h"

#include <algorithm>

#include "nezha/base/check.h"
#include "nezha/s3/sha256.h"

namespace nezha::cache {

Approvals::Approvals(size_t count_max) : shard_count_max_(std::max<size_t>(1, count_max / kShards)) {}

Approvals::Token Approvals::token(const s3::AccessKeyId& reader, const CacheKey& key) {
  std::string text;
  for (const std::string* part : {&reader.get(), &key.path, &key.query}) {
    text += std::to_string(part->size()) + ':';
    text += *part;
  }
  const std::string hash = s3::sha256_hex(text);
  Token out;
  NEZHA_CHECK(hash.size() >= out.size(), "SHA-256 has 64 digits");
  std::copy_n(hash.begin(), out.size(), out.begin());
  return out;
}

Approvals::Word& Approvals::word_of(Shard& shard, const Token& token) const {
  if (shard.words.size() >= shard_count_max_ && !shard.words.contains(token)) shard.words.clear();
  return shard.words[token];
}

void Approvals::note(const Token& token, const std::string& etag, Way way, SteadyTime asked_at) {
  Shard& shard = shards_[shard_of(token)];
  std::lock_guard lock(shard.mutex);
  Word& word = word_of(shard, token);
  if (word.refused && asked_at <= *word.refused) return;
  if (word.etag != etag) word = {etag, {}, word.refused};
  word.noted[static_cast<size_t>(way)] = asked_at;
}

bool Approvals::holds(const Token& token, const std::string& etag, Way way, SteadyTime now,
                      std::chrono::seconds age_max) const {
  const Shard& shard = shards_[shard_of(token)];
  std::lock_guard lock(shard.mutex);
  const auto at = shard.words.find(token);
  if (at == shard.words.end() || at->second.etag != etag) return false;
  const auto& noted = at->second.noted[static_cast<size_t>(way)];
  return noted && now - *noted < age_max;
}

void Approvals::refuse(const Token& token, SteadyTime now) {
  Shard& shard = shards_[shard_of(token)];
  std::lock_guard lock(shard.mutex);
  word_of(shard, token) = {"", {}, now};
}

}  // namespace nezha::cache
