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
    Result<void> carried = carry_tombstones();
    if (!carried && carried.error().remedy == Remedy::kRetryLater) {
      tier_.put_back(victim_);
      return carried;
    }
    Result<void> visited = carried;
    if (visited && !lower_) {  // the policy is asked for an object's share of the segment as a whole
      visited = visit([&](const Record& record, const Place& place) {
        if (store_.index_.liveness(record, place).live) sizes_[record.generation] += place.size_bytes;
      });
    }
    if (visited) visited = visit([&](const Record& record, const Place& place) { save(record, place); });
    if (!visited) {
      retire(visited.error().message);
      return ok();
    }
    // Wiped before it is forgotten: an invalidation that finds nothing in the index writes no tombstone, and then
    // nothing may lie here that a restart would bring back.
    Result<void> wiped = tier_.wipe(victim_);
    if (!wiped) {
      store_.abandon(tier_, wiped.error().message);
      return wiped;
    }
    visited = visit([&](const Record& record, const Place& place) { forget(record, place); });
    if (visited && tier_.is_indexed(victim_)) visited = fail(Remedy::kGiveUp, "the index knows more than lies there");
    if (visited)
      tier_.give_back(victim_);
    else
      retire(visited.error().message);
    for (const auto& [key, generation] : forbidden_) {
      if (!store_.forbid_evicted(key, generation)) store_.abandon(tier_, "no room for a tombstone");
      store_.index_.forbidden(key);
    }
    return ok();
  }

 private:
  template <class Visit>
  Result<void> visit(const Visit& visit) {
    return tier_.visit_victim(victim_, [&](const Record& record, const Place& place) {
      if (!is_tombstone(record)) visit(record, place);
    });
  }

  // What lies there unseen may be in the index, or forbid something: it stays as it is.
  void retire(const std::string& reason) {
    store_.deps_.log.warning("a segment cannot be read, and is kept out of use",
                             {{"tier", tier_.name()}, {"reason", reason}});
    tier_.retire(victim_);
  }

  // On the medium for good before the segment they lie in is wiped.
  Result<void> carry_tombstones() {
    Result<void> carried = ok();
    Result<void> visited = tier_.visit_victim(victim_, [&](const Record& record, const Place&) {
      if (is_tombstone(record) && carried && tier_.tombstone_needed(record, victim_))
        carried = tier_.carry_tombstone(record);
    });
    if (!visited) return visited;
    if (!carried) return carried;
    return tier_.sync_carried();
  }

  void save(const Record& record, const Place& place) {
    const Index::Liveness state = store_.index_.liveness(record, place);
    if (!state.live) return;
    if (keeps(record, state) && move(record, place, tier_, true)) return;
    if (lower_ && !state.elsewhere) move(record, place, *lower_, false);
  }

  void forget(const Record& record, const Place& place) {
    const Index::Liveness state = store_.index_.liveness(record, place);
    if (!state.live) return;
    // Heads of it that lie in segments that are still there must not come back without their bytes; and from when the
    // index does not know them any more, an invalidation does not reach them.
    const bool forbidden = state.heads_left && store_.forbid_evicted(record.key, record.generation);
    const Index::Forgotten forgotten = store_.index_.forget(record, place, forbidden);
    if (!forgotten.dropped) return;
    if (forgotten.heads_left && !forbidden) forbidden_.emplace_back(record.key, record.generation);
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
    const auto appended =
        kept ? to.append_kept(record, pinned.bytes) : store_.append(to, Queue::kProbation, record, pinned.bytes);
    if (!appended) return false;
    // Dropped meanwhile: the tombstone of that may not reach as far as where the copy lies.
    if (!store_.index_.move(record, place, appended.value().place)) {
      store_.index_.forbid_later(record.key);
      forbidden_.emplace_back(record.key, record.generation);
    }
    return true;
  }

  Store& store_;
  Tier& tier_;
  const Tier::Victim victim_;
  Tier* lower_ = nullptr;
  const bool keep_read_;
  std::unordered_map<uint64_t, uint64_t> sizes_;  // of live records, by generation
  std::unordered_map<uint64_t, bool> kept_;       // by generation
  std::vector<std::pair<KeyHash, uint64_t>> forbidden_;
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

// Within a reclaim, where no other room can be made. False when there was none.
bool Store::forbid_evicted(const KeyHash& hash, uint64_t generation) {
  bool all = true;
  for (auto& tier : tiers_) {
    if (!tier->durable() || tier->abandoned()) continue;
    const Result<void> written = tier->append_tombstone({RecordKind::kGenerationTombstone, hash, generation, 0}, false);
    if (written) continue;
    all &= written.error().remedy != Remedy::kRetryLater;
    if (written.error().remedy != Remedy::kRetryLater) abandon(*tier, written.error().message);
  }
  return all;
}

void Store::abandon(Tier& tier, const std::string& reason) {
  deps_.log.error("a tier cannot be used and starts empty next time", {{"tier", tier.name()}, {"reason", reason}});
  if (tier.abandon()) return;
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
