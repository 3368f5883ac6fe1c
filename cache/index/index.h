// Index: which responses are stored, and where their bytes lie. In memory, sharded by path.
// A generation is one version of one representation: a head and the extents of its bytes; extents of two generations
// are never mixed. Invalidation is by path and dooms the fills under way for it, so that a racing fill cannot bring
// old bytes back.
// Threads: any; each call holds one shard's lock for a short time.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cache/classify/stored_head.h"
#include "cache/tier/tier.h"
#include "nezha/http/range.h"

namespace nezha::cache {

// A piece of a representation and where it is kept.
struct Extent {
  uint64_t offset = 0;
  Place place;
  uint64_t end() const { return offset + place.size_bytes; }
};

// Bytes for one answer, pinned: complete and in order.
struct PinnedBody {
  http::ByteRange range;
  std::vector<PinnedBytes> pieces;
};

// Held by a fill from before its request is sent until it publishes or gives up. Does not outlive the Index.
struct FillTicket {
  std::string path;
  std::atomic<bool> doomed{false};
};

class Index {
 public:
  explicit Index(Tier& tier) : tier_(tier) {}

  // The stored response that this request selects, or null.
  StoredHeadPtr find(const CacheKey& key, const http::Fields& request);
  // The bytes of `range` of exactly this head's generation; nothing when some are missing or were reclaimed.
  std::optional<PinnedBody> pin(const CacheKey& key, const StoredHeadPtr& head, http::ByteRange range);

  std::shared_ptr<FillTicket> begin_fill(const CacheKey& key);
  // Makes the extents visible. Joins the generation in place when both have the same strong validator and length,
  // replaces it otherwise. Does nothing for a doomed ticket. Returns whether it was published.
  bool publish(const FillTicket& ticket, const CacheKey& key, const StoredHeadPtr& head, std::vector<Extent> extents);
  // After a 304: the same generation under a new head. The head in force afterwards, or null when it is gone.
  StoredHeadPtr refresh(const CacheKey& key, const StoredHeadPtr& old_head, const StoredHeadPtr& new_head);
  // Drops everything under the path, with every query and variant, and dooms its fills.
  void invalidate(const std::string& path);
  // Drops one generation (its bytes turned out to be gone or bad).
  void drop(const CacheKey& key, const StoredHeadPtr& head);
  // For the tier: drops extents that were reclaimed from the objects with these owner hashes.
  void sweep(const std::vector<uint64_t>& owners);

  static uint64_t owner_hash(const std::string& path);
  size_t object_count() const { return objects_.load(std::memory_order_relaxed); }
  uint64_t head_bytes() const { return head_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Generation {
    std::string query;
    StoredHeadPtr head;
    std::vector<Extent> extents;  // sorted by offset; may overlap
  };
  struct Object {
    std::string path;
    std::vector<Generation> generations;
  };
  struct Shard {
    std::mutex mutex;
    std::unordered_multimap<uint64_t, Object> objects;     // by owner_hash
    std::unordered_multimap<uint64_t, FillTicket*> fills;  // a ticket leaves when it is destroyed
  };
  using ObjectPosition = std::unordered_multimap<uint64_t, Object>::iterator;

  Shard& shard_of(uint64_t hash) { return shards_[hash % shards_.size()]; }
  static Object* find_object(Shard& shard, uint64_t hash, const std::string& path);
  static Generation* find_generation(Shard& shard, uint64_t hash, const CacheKey& key, const StoredHead* head);
  void account(const Generation& generation, int sign);
  bool still_there(const Extent& extent) { return tier_.pin(extent.place).has_value(); }
  void erase_if_empty(Shard& shard, uint64_t hash, const std::string& path);

  Tier& tier_;
  std::array<Shard, 64> shards_;
  std::atomic<size_t> objects_{0};
  std::atomic<uint64_t> head_bytes_{0};
};

}  // namespace nezha::cache
