// Approvals: which readers the source let have which version of an object, and when. In memory alone, and for known
// keys alone: who holds an approval that is young enough is served without asking the source again.
// An approval is about one reader and one key of the cache with its query; within that about one strong ETag, another
// version needs another, and about one way of signing. A refusal ends all of it. Threads: any.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "cache/classify/classify.h"
#include "nezha/base/clock.h"
#include "nezha/s3/credentials.h"

namespace nezha::cache {

class Approvals {
 public:
  // `count_max`: what is noted beyond it makes room by forgetting others, who are then asked for once more.
  explicit Approvals(size_t count_max);

  // Whose, and of what: a hash that nobody can make two of, since readers choose much of what goes in.
  using Token = std::array<char, 40>;
  static Token token(const s3::AccessKeyId& reader, const CacheKey& key);

  enum class Way { kHeader, kQuery };  // the source may judge them by different rules

  // `asked_at`: when the request was sent that the source answered. One from before the last refusal does not count.
  void note(const Token& token, const std::string& etag, Way way, SteadyTime asked_at);
  bool holds(const Token& token, const std::string& etag, Way way, SteadyTime now, std::chrono::seconds age_max) const;
  void refuse(const Token& token, SteadyTime now);

 private:
  static constexpr size_t kShards = 16;
  struct Hash {
    size_t operator()(const Token& token) const { return std::hash<std::string_view>()({token.data(), token.size()}); }
  };
  struct Word {
    std::string etag;
    std::array<std::optional<SteadyTime>, 2> noted;  // by Way
    std::optional<SteadyTime> refused;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<Token, Word, Hash> words;
  };
  static size_t shard_of(const Token& token) { return Hash()(token) % kShards; }
  Word& word_of(Shard& shard, const Token& token) const;

  const size_t shard_count_max_;
  std::array<Shard, kShards> shards_;
};

}  // namespace nezha::cache
