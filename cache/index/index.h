// Index: which responses are stored, and where their records lie. In memory, sharded by path; about 60 bytes a record.
// A generation is one version of one representation: a head and the extents of its bytes; extents of two generations
// are never mixed. Heads are kept decoded while they are in use, within a budget, and otherwise on the medium alone.
// Knows no medium beyond pinning places; what must be written is the store's business.
// Threads: any; each call holds one shard's lock for a short time and never blocks on a medium.
#pragma once

#include <array>
#include <atomic>
#include <boost/container/small_vector.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cache/classify/stored_head.h"
#include "cache/tier/tier.h"
#include "nezha/http/range.h"

namespace nezha::cache {

KeyHash hash_of(const CacheKey& key);
uint64_t hash_of_path(std::string_view path);  // KeyHash::path

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
// Takes bytes away from the front, and with them the pins of pieces that are gone.
void skip_bytes(PinnedBody& body, uint64_t size_bytes);

// Held by a fill from before its request is sent until it ends. Does not outlive the Index.
struct FillTicket {
  KeyHash key;
  std::string path;         // of the key
  uint64_t generation = 0;  // that the fill will publish, unless it joins an older one
  std::atomic<bool> doomed{false};
  std::atomic<bool> ended{false};  // its readers may hold on to it for longer
};

class Index {
 public:
  // `head_bytes_max`: of decoded heads. The tiers are indexed by Place::tier() and outlive the index.
  Index(std::vector<Tier*> tiers, uint64_t head_bytes_max);

  // What find() saw: a head, or the place of one that must be decoded first, or neither.
  struct Found {
    StoredHeadPtr head;
    uint64_t undecoded = 0;  // a generation; then `record` is its head record
    PinnedBytes record;
  };
  // The newest stored response under the key that this request selects (RFC 9111 §4). `count`: as a read of the object.
  // `decoded`: heads that the caller has decoded for this look-up, since those kept here may go at any time.
  Found find(const KeyHash& hash, const CacheKey& key, const http::Fields& request, bool count,
             const std::vector<StoredHeadPtr>& decoded);
  // Keeps a decoded head. A head that is not the generation's latest is not kept.
  void set_decoded(const KeyHash& hash, const Place& record, const StoredHeadPtr& head);

  // The bytes of `range` of this generation; nothing when some are missing. Faster tiers first.
  std::optional<PinnedBody> pin(const KeyHash& hash, uint64_t generation, http::ByteRange range);

  // The smallest piece of `range` that holds all of its bytes that are not stored; nothing when none is missing or the
  // generation is gone.
  std::optional<http::ByteRange> missing(const KeyHash& hash, uint64_t generation, http::ByteRange range);

  std::shared_ptr<FillTicket> begin_fill(const KeyHash& hash, std::string path);
  bool is_filling(const KeyHash& hash);
  // The next number of all that are given to generations and tombstones. Higher than any before.
  uint64_t next_generation() { return next_generation_.fetch_add(1); }

  // Every generation under the key, newest first. A head is null while it is not decoded.
  struct Entry {
    uint64_t generation = 0;
    PinnedBytes record;  // of the head, while it is not decoded
    uint32_t revision = 0;
    StoredHeadPtr head;
  };
  std::vector<Entry> entries(const KeyHash& hash);
  static constexpr size_t kShards = 64;
  // The paths of one shard's fills.
  std::vector<std::string> filling(size_t shard);
  // All generations of one shard, a slice at a time, so that nobody waits long for the lock: what is there at the first
  // call, and stays, is in one of them; some may come twice. False: this was the last.
  struct Cursor {
    size_t shard = 0;
    size_t bucket = 0;   // where the next slice begins
    size_t buckets = 0;  // that there were
  };
  bool next_slice(Cursor& cursor, std::vector<std::pair<KeyHash, Entry>>& into);
  // Adds a generation without bytes. False for a doomed ticket.
  bool insert(const FillTicket& ticket, const Place& record, const StoredHeadPtr& head);
  // Puts a new head into a generation: in memory alone when there is no `record`. False when the generation is gone.
  bool replace_head(const KeyHash& hash, const StoredHeadPtr& head, const Place* record);
  // False when the ticket is doomed or the generation is gone.
  bool add_extents(const FillTicket& ticket, uint64_t generation, const std::vector<Extent>& extents);
  // The same, for bytes that were copied: whatever the state of fills.
  bool add_copy(const KeyHash& hash, uint64_t generation, const Extent& extent);
  void remove(const KeyHash& hash, uint64_t generation);
  // Whether it is not known, and every tombstone that its path needs is on the medium.
  bool is_gone(const KeyHash& hash, uint64_t generation);
  // Drops everything under the path, with every query and variant, and dooms its fills. The number up to which a
  // tombstone must forbid it; nothing when there was neither, and no other tombstone of it is still being written.
  // Call forbidden() when the tombstone is on the medium.
  std::optional<uint64_t> invalidate(uint64_t path_hash);
  // A tombstone of the path is about to be written: until forbidden(), invalidations of it write theirs as well.
  void forbid_later(const KeyHash& hash);
  void forbidden(const KeyHash& hash);

  // For reclaiming: what the index knows of a record that lies at `place`.
  struct Liveness {
    bool live = false;
    unsigned reads = 0;
    bool elsewhere = false;  // kExtent: another tier holds these bytes too
    uint32_t revision = 0;
    bool heads_left = false;  // if it were forgotten now: as below
  };
  Liveness liveness(const Record& record, const Place& place);
  unsigned reads(const KeyHash& hash, uint64_t generation);
  // Whether this extent lies at `place`, and not in the other tier as well.
  bool needs_copy(const Record& extent, const Place& place, uint8_t tier);
  // A reclaim kept it: it has to be read again to be kept as often.
  void lower_reads(const KeyHash& hash, uint64_t generation);
  // The record lies somewhere else now. False when it is gone.
  bool move(const Record& record, const Place& from, const Place& to);
  // Or nowhere. `dropped`: that left its generation without head or without bytes. `heads_left`: and heads of it may
  // still lie in other segments: unless they are `forbidden` by a tombstone on the medium, it is as after
  // forbid_later().
  struct Forgotten {
    bool dropped = false;
    bool heads_left = false;
  };
  Forgotten forget(const Record& record, const Place& place, bool forbidden);

  // Reading a tier in: tombstones first, then the rest in the order it was written. finish() drops what has no head.
  // By one thread. What is recovered is seen by others once finish_recovery() has returned.
  void recover_tombstone(const Record& tombstone);
  void recover(const Record& record, const Place& place);
  void finish_recovery();
  // Everything of a tier that turned out not to be readable as a whole. The generations that are gone with it: heads of
  // them in other tiers come back at the next start unless tombstones forbid it.
  [[nodiscard]] std::vector<std::pair<KeyHash, uint64_t>> forget_tier(uint8_t tier);

  size_t generation_count() const { return generations_.load(std::memory_order_relaxed); }
  uint64_t head_bytes() const { return head_bytes_.load(std::memory_order_relaxed); }
  // An estimate of what the entries themselves take.
  uint64_t entry_bytes() const;

 private:
  struct Generation {
    uint64_t query = 0;
    uint64_t id = 0;
    Place head_record;
    StoredHeadPtr head;                                 // while decoded
    boost::container::small_vector<Extent, 1> extents;  // sorted by offset; of several tiers may overlap
    uint32_t revision = 0;
    uint8_t reads = 0;           // saturating, for the policy
    bool used = false;           // the decoded head, since the last sweep
    bool has_head = false;       // always, once recovery has ended
    bool has_old_heads = false;  // on the medium, beside the one in force
  };
  using Map = std::unordered_multimap<uint64_t, Generation>;  // by path hash
  struct Shard {
    std::mutex mutex;
    Map generations;
    std::unordered_multimap<uint64_t, FillTicket*> fills;  // a ticket leaves when it is destroyed
    uint64_t head_bytes = 0;
    size_t sweep_bucket = 0;
    std::unordered_multiset<uint64_t> unforbidden;  // paths whose tombstone is not on the medium yet
    // While recovering: what must not come back.
    std::unordered_map<uint64_t, uint64_t> dead_paths;  // up to this generation
    std::unordered_map<uint64_t, char> dead_generations;
    std::vector<std::pair<Record, Place>> recovering;  // not entered yet
    size_t headless = 0;                               // generations of which a head is still to come
  };

  Shard& shard_of(uint64_t path_hash) { return shards_[path_hash % shards_.size()]; }
  static Generation* find_generation(Shard& shard, const KeyHash& hash, uint64_t id);
  void erase(Shard& shard, Map::iterator at);
  void set_head(Shard& shard, Generation& generation, StoredHeadPtr head);
  void sweep_heads(Shard& shard);
  void retain(const Place& place) { tiers_[place.tier()]->retain(place); }
  void release(const Place& place) { tiers_[place.tier()]->release(place); }
  void relocate(Place& place, const Place& to);
  void insert_extent(Generation& generation, const Extent& extent);
  void enter_recovered();
  static bool is_dead(const Shard& shard, const Record& record);
  Generation& generation_of(Shard& shard, const Record& record);
  void enter(Shard& shard, Generation& generation, const Record& record, const Place& place);
  bool covered_elsewhere(const Generation& generation, const Extent& extent) const;
  static Forgotten without(const Generation& generation, const Record& record, const Place& place);

  const std::vector<Tier*> tiers_;
  const uint64_t shard_head_bytes_max_;
  std::array<Shard, kShards> shards_;
  std::atomic<uint64_t> next_generation_{1};
  std::atomic<size_t> generations_{0};
  std::atomic<size_t> extents_{0};
  std::atomic<uint64_t> head_bytes_{0};
};

}  // namespace nezha::cache
