// Approvals: which readers the source let have which version of an object, and when. In memory alone, and for known
// keys alone: who holds an approval that is young enough is served without asking the source again.
// An approval is about one strong ETag under one key of the cache, and about all of the reader that a source's policy
// is likely to look at. A refusal ends all of that reader's for the path, a write, purge or event all for the path.
// Threads: any.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "nezha/base/clock.h"

namespace nezha::cache {

class Approvals {
 public:
  // `count_max`: what is noted beyond it makes room by forgetting others, who are then asked for once more.
  explicit Approvals(size_t count_max);

  // Who asks for what.
  struct Subject {
    std::array<char, 40> token;  // of everything; a hash that nobody can make two of, since readers choose much of it
    size_t reader = 0;           // hashes
    size_t path = 0;
  };
  // `reader`: names him, with his secret. `circumstances`: what else his approvals are good under alone.
  static Subject subject(std::string_view reader, std::string_view path,
                         std::initializer_list<std::string_view> circumstances);

  // `asked_at`: when the request was sent that the source answered. One from before the last end does not count.
  void note(const Subject& subject, const std::string& etag, SteadyTime asked_at);
  bool holds(const Subject& subject, const std::string& etag, SteadyTime now, std::chrono::seconds age_max) const;

  void refuse(const Subject& subject, SteadyTime now);  // the source refused him
  void end(std::string_view path, SteadyTime now);
  void end_all(SteadyTime now);

 private:
  struct Word {
    Subject subject;
    std::string etag;
    SteadyTime noted;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<size_t, std::vector<Word>> words;  // by path
    size_t count = 0;
    // When something of a path was ended last. Paths share them: then a note is lost, and made at the next request.
    std::array<SteadyTime, 256> ended;
    SteadyTime& ended_at(size_t path) { return ended[path / kShards % ended.size()]; }
  };
  static constexpr size_t kShards = 16;
  Shard& shard_of(size_t path) { return shards_[path % kShards]; }
  const Shard& shard_of(size_t path) const { return shards_[path % kShards]; }

  const size_t shard_count_max_;
  std::array<Shard, kShards> shards_;
};

}  // namespace nezha::cache
