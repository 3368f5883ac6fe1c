// Reclaiming a segment: what is worth it moves on (to main, or to the next tier), the rest is forgotten.
#include <algorithm>

#include "cache/store/store.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr unsigned kReadsToStayUp = 2;  // in a tier above another one

}  // namespace

class Store::Reclaim {
 public:
  // `keep_read`: what is read often may stay in a tier above another one.
  Reclaim(Store& store, Tier& tier, Tier::Victim victim, bool keep_read)
      : store_(store), tier_(tier), victim_(victim), keep_read_(keep_read) {
    const size_t next = static_cast<size_t>(tier.id()) + 1;
    if (next < store.tiers_.size() && !store.tiers_[next]->abandoned()) lower_ = store.tiers_[next].get();
  }

  Result<void> run() {
    Result<void> done = reclaim();
    for (const auto& [key, generation] : forbid_later_) {
      if (Tier* full = store_.forbid_evicted(key, generation)) store_.abandon(*full, "no room for a tombstone");
      store_.index_.forbidden(key);
    }
    return done;
  }

 private:
  Result<void> reclaim() {
    Result<void> ready = read();
    if (ready) ready = tier_.carry_tombstones(tombstones_);
    if (!ready && ready.error().remedy == Remedy::kRetryLater) return put_back(ready);
    if (!ready) {  // what lies there unseen may be in the index, or forbid something: it stays as it is
      retire(ready.error().message);
      return ok();
    }
    for (const auto& [record, place] : records_) save(record, place);
    Result<void> forbidden = forbid_heads();
    if (!forbidden) return put_back(forbidden);
    // Wiped before it is forgotten: an invalidation that finds nothing in the index writes no tombstone, and then
    // nothing may lie here that a restart would bring back.
    Result<void> wiped = tier_.wipe(victim_);
    if (!wiped) {
      store_.abandon(tier_, wiped.error().message);
      return wiped;
    }
    for (const auto& [record, place] : records_) forget(record, place);
    if (tier_.is_indexed(victim_))
      retire("the index knows more than lies there");
    else
      tier_.give_back(victim_);
    return ok();
  }

  Result<void> put_back(Result<void> reason) {
    tier_.put_back(victim_);
    return reason;
  }

  void retire(const std::string& reason) {
    store_.deps_.log.warning("a segment cannot be reclaimed, and is kept out of use",
                             {{"tier", tier_.name()}, {"reason", reason}});
    tier_.retire(victim_);
  }

  Result<void> read() {
    NEZHA_TRY(tier_.visit_victim(victim_, [&](const Record& record, const Place& place) {
      if (!is_tombstone(record))
        records_.emplace_back(record, place);
      else if (tier_.tombstone_needed(record, victim_))
        tombstones_.push_back(record);
    }));
    if (lower_) return ok();
    for (const auto& [record, place] : records_) {  // the policy is asked for an object's share of the segment
      if (store_.index_.liveness(record, place).live) sizes_[record.generation] += place.size_bytes;
    }
    return ok();
  }

  void save(const Record& record, const Place& place) {
    const Index::Liveness state = store_.index_.liveness(record, place);
    if (!state.live) return;
    if (keeps(record, state) && move(record, place, tier_, true)) return;
    if (lower_ && !state.elsewhere && move(record, place, *lower_, false)) return;
    if (record.kind == RecordKind::kHead && state.heads_left) lost_heads_.emplace(record.generation, record.key);
  }

  // An older head in another segment must not be in force again once the one here is wiped, not even after power is
  // lost.
  Result<void> forbid_heads() {
    std::vector<Record> tombstones;
    for (const auto& [generation, key] : lost_heads_) {
      tombstones.insert(tombstones.end(), 2, {RecordKind::kGenerationTombstone, key, generation, 0});
    }
    for (auto& tier : store_.tiers_) {
      if (!tier->durable() || tier->abandoned()) continue;
      const Result<void> carried = tier->carry_tombstones(tombstones);
      if (carried) continue;
      if (carried.error().remedy == Remedy::kRetryLater) return carried;
      store_.abandon(*tier, carried.error().message);
    }
    return tier_.abandoned() ? fail(Remedy::kGiveUp, "the tier was given up") : Result<void>(ok());
  }

  void forget(const Record& record, const Place& place) {
    const Index::Liveness state = store_.index_.liveness(record, place);
    if (!state.live) return;
    // Heads of it that lie in segments that are still there must not come back without their bytes; and from when the
    // index does not know them any more, an invalidation does not reach them.
    const bool forbidden = lost_heads_.contains(record.generation) ||
                           (state.heads_left && !store_.forbid_evicted(record.key, record.generation));
    const Index::Forgotten forgotten = store_.index_.forget(record, place, forbidden);
    if (!forgotten.dropped) return;
    if (forgotten.heads_left && !forbidden) forbid_later_.emplace_back(record.key, record.generation);
    if (!lower_) store_.policy_->on_evicted(record.key.query, sizes_[record.generation], victim_.queue);
  }

  // One answer per object and segment, so that its head and its bytes share their fate.
  bool keeps(const Record& record, const Index::Liveness& state) {
    const auto known = kept_.find(record.generation);
    if (known != kept_.end()) return known->second;
    const bool keep =
        lower_ ? keep_read_ && state.reads >= kReadsToStayUp
               : store_.policy_->keep(record.key.query, sizes_[record.generation], victim_.queue, state.reads);
    if (keep) store_.index_.lower_reads(record.key, record.generation);
    kept_.emplace(record.generation, keep);
    return keep;
  }

  bool move(const Record& record, const Place& place, Tier& to, bool kept) {
    if (!tier_.make_ready(place)) return false;  // damaged: nobody shall have it
    const PinnedBytes pinned = tier_.pin(place);
    // It may be dropped meanwhile, and the tombstone of that need not reach as far as where the copy lies.
    store_.index_.forbid_later(record.key);
    const auto appended =
        kept ? to.append_kept(record, pinned.bytes) : store_.append(to, Queue::kProbation, record, pinned.bytes);
    if (appended && !store_.index_.move(record, place, appended.value().place))
      forbid_later_.emplace_back(record.key, record.generation);
    else
      store_.index_.forbidden(record.key);
    return static_cast<bool>(appended);
  }

  Store& store_;
  Tier& tier_;
  const Tier::Victim victim_;
  Tier* lower_ = nullptr;
  const bool keep_read_;
  std::unordered_map<uint64_t, uint64_t> sizes_;  // of live records, by generation
  std::unordered_map<uint64_t, bool> kept_;       // by generation
  std::vector<std::pair<Record, Place>> records_;
  std::vector<Record> tombstones_;                          // still needed
  std::unordered_map<uint64_t, KeyHash> lost_heads_;        // heads in force that go with the segment, by generation
  std::vector<std::pair<KeyHash, uint64_t>> forbid_later_;  // once there is room
};

Result<void> Store::make_room(Tier& tier) {
  std::lock_guard one_at_a_time(*reclaim_mutexes_[tier.id()]);
  if (tier.has_free_segment()) return ok();  // somebody else has just made one
  NEZHA_TRY(reclaim_one(tier, true));
  // Where everything is read often, keeping it frees nothing.
  return tier.has_free_segment() || &tier == tiers_.back().get() ? Result<void>(ok()) : reclaim_one(tier, false);
}

Result<void> Store::shrink_index() {
  Tier& tier = *tiers_.back();  // what the others give up only moves down
  std::lock_guard one_at_a_time(*reclaim_mutexes_[tier.id()]);
  while (index_.entry_bytes() > limits_.entry_bytes_max) {
    NEZHA_TRY(reclaim_one(tier, true));
  }
  return ok();
}

Result<void> Store::reclaim_one(Tier& tier, bool keep_read) {
  // The policy is the last tier's; those above give up what is oldest.
  const bool last = &tier == tiers_.back().get();
  const Queue preferred =
      last ? policy_->victim(tier.queue_bytes(Queue::kProbation), tier.queue_bytes(Queue::kMain)) : Queue::kProbation;
  const auto victim = tier.take_victim(preferred);
  if (!victim) return fail(Remedy::kRetryLater, "all segments of the tier are being read");
  return Reclaim(*this, tier, *victim, keep_read).run();
}

// Within a reclaim, where no other room can be made.
Tier* Store::forbid_evicted(const KeyHash& hash, uint64_t generation) {
  Tier* full = nullptr;
  for (auto& tier : tiers_) {
    if (!tier->durable() || tier->abandoned()) continue;
    const Result<void> written = tier->append_tombstone({RecordKind::kGenerationTombstone, hash, generation, 0}, false);
    if (written) continue;
    if (written.error().remedy == Remedy::kRetryLater)
      full = tier.get();
    else
      abandon(*tier, written.error().message);
  }
  return full;
}

void Store::abandon(Tier& tier, const std::string& reason) {
  deps_.log.error("a tier cannot be used and starts empty next time", {{"tier", tier.name()}, {"reason", reason}});
  if (!tier.abandon()) report_not_removed(tier);
}

void Store::report_not_removed(const Tier& tier) {
  deps_.log.error(
      "its segments could not be removed: delete them before the next start, they may hold what was dropped",
      {{"tier", tier.name()}});
}

void Store::note_hit(const CacheKey& key, const StoredHeadPtr& head, const PinnedBody& body) {
  for (const PinnedBytes& piece : body.pieces) {
    if (piece.place) tier_metrics_[piece.place->tier()].hit_bytes.add(static_cast<double>(piece.bytes.size()));
  }
  if (tiers_.size() == 1 || body.pieces.empty() || !body.pieces.front().place) return;
  const uint8_t tier = body.pieces.front().place->tier();
  if (tier == 0 || body.range.size_bytes() > tiers_[tier - 1]->size_bytes() / limits::kPromotionShare) return;
  const KeyHash hash = hash_of(key);
  Promotion job{hash, head->generation, {}};
  uint64_t at = body.range.begin;
  for (const PinnedBytes& piece : body.pieces) {
    const bool whole = piece.place && piece.bytes.size() == piece.place->size_bytes;
    if (whole && piece.place->tier() > 0 && !tiers_[piece.place->tier() - 1]->abandoned())
      job.pieces.emplace_back(at, piece);
    at += piece.bytes.size();
  }
  if (job.pieces.empty() || index_.reads(hash, head->generation) < kReadsToStayUp) return;
  {
    std::lock_guard lock(promotions_mutex_);
    if (promotions_.size() >= limits::kPromotionsMax) return;
    promotions_.push_back(std::move(job));
  }
  promotions_changed_.notify_one();
}

void Store::promote_until_stopped(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    Promotion job;
    {
      std::unique_lock lock(promotions_mutex_);
      if (!promotions_changed_.wait(lock, stop, [&] { return !promotions_.empty(); })) return;
      job = std::move(promotions_.front());
      promotions_.pop_front();
    }
    promote(job);
  }
}

void Store::promote(const Promotion& job) {
  for (const auto& [offset, piece] : job.pieces) {
    Tier& from = *tiers_[piece.place->tier()];
    Tier& to = *tiers_[piece.place->tier() - 1];
    const Record record{RecordKind::kExtent, job.key, job.generation, offset};
    // Another request may have had it copied, or the object may be gone.
    if (!index_.needs_copy(record, *piece.place, to.id()) || !from.make_ready(*piece.place)) continue;
    const auto appended = append(to, Queue::kProbation, record, piece.bytes);
    if (!appended) return;
    // Dropped meanwhile: the tombstone of that may not reach as far as where the copy lies.
    if (!index_.add_copy(job.key, job.generation, {offset, appended.value().place}))
      forbid(RecordKind::kGenerationTombstone, job.key, job.generation, false);
  }
}

}  // namespace nezha::cache
