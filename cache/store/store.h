// Store: stored responses, whatever they lie on. Composes the index (memory), the tiers (media) and the policy (what to
// keep), and keeps them consistent: what the index shows is on a medium, and what must not come back after a restart is
// forbidden there by a tombstone before anybody is told that it is gone.
//
// Tiers are ordered from the fastest to the slowest. Fills go to the first one that outlives the process; what is read
// again is copied upwards, what an upper tier gives up moves downwards.
// Threads: any. Functions marked "blocks" wait for a medium: call them on a worker, never on a loop. The others, and
// the coroutines, are for loops.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cache/index/index.h"
#include "cache/policy/policy.h"
#include "cache/tier/run_marker.h"
#include "cache/tier/tier.h"
#include "nezha/net/async.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"

namespace nezha::cache {

struct StoreDeps {
  net::Workers& workers;  // for writing
  net::Workers& loaders;  // for bringing bytes in: writing may be slow
  const Clock& clock;
  obs::Log& log;
  obs::Metrics& metrics;
};

struct StoreLimits {
  uint64_t head_bytes_max = 0;   // decoded heads in memory
  uint64_t entry_bytes_max = 0;  // the index's entries; past it the tier gives up segments
  uint64_t fill_bytes_max = 0;   // buffers of fills under way; past it new ones are only relayed
};

class Store {
 public:
  // Takes over what the tiers hold from an earlier process and logs it. A tier that was left out of a run starts empty.
  // `tiers`: in any order, at most one of memory.
  // Blocks. Fails with kFixInput: a tier cannot be opened.
  static Result<std::unique_ptr<Store>> open(std::vector<config::TierSettings> tiers, const StoreLimits& limits,
                                             StoreDeps deps);
  // With media of the caller's; for tests. `segment_bytes` 0: chosen from the size.
  struct TierPlan {
    std::unique_ptr<Medium> medium;
    uint64_t size_bytes = 0;
    uint64_t segment_bytes = 0;
    uint64_t beside_bytes = 0;  // of the size: for what is no segment
  };
  static Result<std::unique_ptr<Store>> open(std::vector<TierPlan> tiers, const StoreLimits& limits, StoreDeps deps);
  ~Store();

  // Looking up.
  // The stored response that this request selects, or null. With `must_load` it is not in memory: await find().
  StoredHeadPtr find_now(const CacheKey& key, const http::Fields& request, bool& must_load);
  net::Task<StoredHeadPtr> find(const CacheKey& key, const http::Fields& request);
  // For the policy: once per request that wanted the object. `head`: what was found, or null.
  void note_request(const CacheKey& key, const StoredHeadPtr& head);
  // The bytes of `range` of this head's generation; nothing when some are missing.
  std::optional<PinnedBody> pin(const CacheKey& key, const StoredHeadPtr& head, http::ByteRange range);
  // The smallest piece of `range` that holds all of its bytes that are missing; nothing when none is.
  std::optional<http::ByteRange> missing(const CacheKey& key, const StoredHeadPtr& head, http::ByteRange range) {
    return index_.missing(hash_of(key), head->generation, range);
  }
  // Whether pinned bytes can be sent without waiting for the medium, and making them so. The latter fails with kGiveUp:
  // they cannot be read or are damaged.
  bool is_ready(const PinnedBytes& piece) const;
  net::Task<Result<void>> make_ready(const PinnedBytes& piece);
  // The same for pieces[index], and those behind it begin to come in meanwhile.
  net::Task<Result<void>> make_ready(const std::vector<PinnedBytes>& pieces, size_t index);
  // After a hit: counts its bytes, and copies what is read often to a faster tier, in the background.
  void note_hit(const CacheKey& key, const StoredHeadPtr& head, const PinnedBody& body);

  // Storing.
  std::shared_ptr<FillTicket> begin_fill(const CacheKey& key) { return index_.begin_fill(hash_of(key), key.path); }
  // Whether anything of the path is under way.
  bool is_filling(const CacheKey& key) { return index_.is_filling(hash_of(key)); }
  // Whether a response of that size is worth storing, and the queue for its bytes. `size_bytes`: of what will be
  // written.
  std::optional<Queue> admit(const CacheKey& key, uint64_t size_bytes);
  std::unique_ptr<Tier::Reservation> reserve(uint64_t size_bytes) { return fill_tier().reserve(size_bytes); }
  // Makes the head visible, without bytes. Joins the generation in place when that is allowed and both have the same
  // strong validator and length, replaces it otherwise. The head in force; its generation takes the extents. Blocks.
  // Fails with kGiveUp: invalidated since the ticket was drawn, older than what is stored, or the medium failed; with
  // kRetryLater: no room.
  Result<StoredHeadPtr> open_generation(const FillTicket& ticket, const CacheKey& key, const StoredHeadPtr& head,
                                        Queue queue, bool may_join);
  // Writes bytes of a generation; not visible before add_extents(). Blocks. Fails with kRetryLater: no room, and with
  // kGiveUp: the medium failed.
  Result<Tier::Appended> append_extent(const FillTicket& ticket, uint64_t generation, Queue queue, uint64_t offset,
                                       std::string_view bytes);
  // False when the ticket is doomed or the generation is gone.
  bool add_extents(const FillTicket& ticket, uint64_t generation, const std::vector<Extent>& extents) {
    return index_.add_extents(ticket, generation, extents);
  }
  // Memory for a fill's buffers: false when there is none left. Give back what was taken.
  bool take_fill_memory(uint64_t size_bytes);
  void give_fill_memory(uint64_t size_bytes) { fill_bytes_ -= size_bytes; }

  // Changing and dropping. When they return, the change also holds after a restart.
  // After a 304: the same generation under a new head. The head in force afterwards, or null when it is gone.
  net::Task<StoredHeadPtr> refresh(const CacheKey& key, StoredHeadPtr old_head, StoredHeadPtr new_head);
  // refresh(), or drop() when the new head may not stay in the store.
  net::Task<> keep_or_drop(const CacheKey& key, StoredHeadPtr old_head, StoredHeadPtr new_head);
  // Drops everything under the paths, with every query and variant, and dooms their fills.
  net::Task<> invalidate(std::vector<std::string> paths);
  // The same for very many, by hash_of_path(); a worker does all of it. Borrows them.
  net::Task<> invalidate_hashed(std::span<const uint64_t> path_hashes);
  using PathPredicate = std::function<bool(const std::string& path)>;
  // The same for every path that matches, stored or on its way; reads each stored head. Those who ask while it is being
  // done for others wait, and it is done once for all of them.
  net::Task<> invalidate_if(PathPredicate matches);
  // Both for callers that are no coroutines. Block.
  size_t purge(const std::vector<std::string>& paths);
  size_t purge_if(const PathPredicate& matches);
  // How often all stored heads were read for a predicate.
  uint64_t scans() const { return scans_; }
  // Drops one generation.
  net::Task<> drop(const CacheKey& key, StoredHeadPtr head);

  struct TierState {
    std::string name;
    uint64_t size_bytes = 0;
    uint64_t used_bytes = 0;
    uint64_t appended_bytes = 0;
    uint64_t kept_bytes = 0;
    bool failed = false;
  };
  std::vector<TierState> tier_states() const;
  PolicyReport policy_report() const { return policy_->report(); }
  size_t generation_count() const { return index_.generation_count(); }
  uint64_t index_bytes() const { return index_.entry_bytes() + index_.head_bytes(); }
  // How many pieces had to be brought in from a medium before they could be sent.
  uint64_t cold_loads() const { return cold_loads_; }

  // Frees at least one segment of the tier. Blocks. Fails with kRetryLater: all of them are being read.
  Result<void> make_room(Tier& tier);
  Tier& fill_tier() const { return *tiers_[fill_tier_]; }

 private:
  struct Promotion {
    KeyHash key;
    uint64_t generation = 0;
    std::vector<std::pair<uint64_t, PinnedBytes>> pieces;  // whole records, by offset
  };
  struct TierMetrics {
    TierMetrics(obs::Metrics& metrics, const Tier& tier);
    obs::Histogram& read_seconds;
    obs::Counter& hit_bytes;
  };
  class Reclaim;
  Result<void> reclaim_one(Tier& tier, bool keep_read);  // REQUIRES: the tier's reclaim mutex
  Result<void> shrink_index();

  Store(std::vector<std::unique_ptr<Tier>> tiers, const StoreLimits& limits, StoreDeps deps);
  void begin_run(RunMarkers& markers);
  void recover();
  void report_recovery(const Tier& tier, const std::string& distrust);
  Result<void> load_piece(const Place& place);  // blocks; measured
  StoredHeadPtr decode(const KeyHash& hash, uint64_t generation, const PinnedBytes& record);
  void drop_damaged(const KeyHash& hash, uint64_t generation);
  Result<Tier::Appended> append(Tier& tier, Queue queue, const Record& record, std::string_view bytes);
  void forbid(RecordKind kind, const KeyHash& hash, uint64_t generation, bool durable);
  void forbid_in(Tier& tier, const Record& tombstone, bool durable);
  static bool takes_tombstones(const Tier& tier);
  std::vector<Record> forget_paths(std::span<const uint64_t> path_hashes);
  size_t purge_hashed(std::span<const uint64_t> path_hashes);
  void forbid_paths(const std::vector<Record>& tombstones);
  std::vector<uint64_t> paths_in(size_t shard, const PathPredicate& matches);
  struct Scan {  // somebody who waits for one
    PathPredicate matches;
    std::atomic<bool> done{false};
    net::Notification ended;
  };
  void scan_while_wanted();
  Tier* forbid_evicted(const KeyHash& hash, uint64_t generation);  // a tier without room for it, or null
  void abandon(Tier& tier, const std::string& reason);
  void report_not_removed(const Tier& tier);
  Result<Tier::Appended> append_head(Queue queue, const Record& record, const StoredHead& head);
  std::vector<Index::Entry> decoded_entries(const KeyHash& hash);
  void promote_until_stopped(const std::stop_token& stop);
  void promote(const Promotion& job);

  StoreDeps deps_;
  const StoreLimits limits_;
  std::vector<std::unique_ptr<Tier>> tiers_;
  std::vector<TierMetrics> tier_metrics_;  // by tier
  size_t fill_tier_ = 0;
  Index index_;
  std::unique_ptr<Policy> policy_;
  std::vector<std::unique_ptr<std::mutex>> reclaim_mutexes_;  // by tier
  std::array<std::mutex, 64> open_mutexes_;                   // by key: generations of one object open one by one
  std::atomic<uint64_t> fill_bytes_{0};
  std::atomic<uint64_t> cold_loads_{0};
  std::atomic<uint64_t> scans_{0};
  std::mutex scans_mutex_;
  std::vector<std::shared_ptr<Scan>> scans_wanted_;
  bool scanning_ = false;  // a worker is at it, and looks for further ones behind that

  std::mutex promotions_mutex_;
  std::condition_variable_any promotions_changed_;
  std::deque<Promotion> promotions_;
  std::jthread promoter_;  // last: it uses all of the above
};

}  // namespace nezha::cache
