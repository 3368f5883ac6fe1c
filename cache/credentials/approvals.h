// Approvals: which readers the source let have which version of an object, and when. In memory alone, and for known
// keys alone: who holds an approval that is young enough is served without asking the source again.
// An approval is about one reader, one way of signing, one key of the cache with its query, and one strong ETag:
// another version needs another. Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

#include "cache/classify/classify.h"
#include "nezha/base/clock.h"
#include "nezha/s3/credentials.h"

namespace nezha::cache {

class Approvals {
 public:
  // `count_max`: what is noted beyond it makes room by forgetting others, who are then asked for once more.
  explicit Approvals(size_t count_max);

  // A hash that nobody can make two of, since readers choose much of what goes in.
  using Token = std::array<char, 64>;
  static Token token(const s3::AccessKeyId& reader, bool presigned, const CacheKey& key, const std::string& etag);

  void note(const Token& token, SteadyTime now);
  bool holds(const Token& token, SteadyTime now, std::chrono::seconds age_max) const;
  // The source refused it.
  void forget(const Token& token);

 private:
  static constexpr size_t kShards = 16;
  struct Hash {
    size_t operator()(const Token& token) const { return std::hash<std::string_view>()({token.data(), token.size()}); }
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<Token, SteadyTime, Hash> noted;
  };
  static size_t shard_of(const Token& token) { return Hash()(token) % kShards; }

  const size_t shard_count_max_;
  std::array<Shard, kShards> shards_;
};

}  // namespace nezha::cache
