#include "cache/store/store.h"

#include <algorithm>
#include <random>

#include "cache/classify/checksums.h"
#include "cache/index/head_record.h"
#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr int kForbidTurnsMax = 250;
constexpr std::chrono::milliseconds kForbidPause{20};
constexpr uint64_t kPolicySeed = 0x6e657a6861;
// 1 µs to 1 s: persistent memory at one end, a disk that is busy at the other.
const std::vector<double> kReadBounds = {1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3,
                                         2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 1e-1, 2e-1, 5e-1, 1};

uint64_t draw_run_id() {
  std::random_device random;
  return static_cast<uint64_t>(random()) << 32 | random();
}

std::vector<Tier*> borrowed(const std::vector<std::unique_ptr<Tier>>& tiers) {
  std::vector<Tier*> out;
  for (const auto& tier : tiers) out.push_back(tier.get());
  return out;
}

uint64_t policy_capacity(const std::vector<std::unique_ptr<Tier>>& tiers) {
  uint64_t total = 0;
  for (const auto& tier : tiers) total += tier->durable() ? tier->size_bytes() : 0;
  return total ? total : tiers.front()->size_bytes();
}

bool same_generation(const StoredHead& a, const StoredHead& b) {
  return a.strong() && b.strong() && http::strong_match(*a.etag, *b.etag) && a.total_bytes == b.total_bytes &&
         a.credentials == b.credentials && a.status == b.status;
}

// Whether what a 304 changed must be known after a restart. A later date alone only makes the answer look older there.
bool worth_writing(const StoredHead& before, const StoredHead& after) {
  if (before.credentials != after.credentials || before.selecting != after.selecting) return true;
  if (before.fields.size() != after.fields.size()) return true;
  for (size_t i = 0; i < before.fields.size(); ++i) {
    const auto field = before.fields[i];
    if (field.name == "Date" || field.name == "date") continue;
    if (after.fields.joined(field.name) != before.fields.joined(field.name)) return true;
  }
  return false;
}

}  // namespace

Store::TierMetrics::TierMetrics(obs::Metrics& metrics, const Tier& tier)
    : read_seconds(metrics.histogram("nezha_cache_tier_read_seconds",
                                     "Time to bring one piece of a body in from the tier's medium and to check it",
                                     kReadBounds, {{"tier", tier.name()}})),
      hit_bytes(metrics.counter("nezha_cache_tier_hit_bytes_total", "Body bytes answered from the tier",
                                {{"tier", tier.name()}})) {}

Store::Store(std::vector<std::unique_ptr<Tier>> tiers, const StoreLimits& limits, StoreDeps deps)
    : deps_(deps),
      limits_(limits),
      tiers_(std::move(tiers)),
      index_(borrowed(tiers_), limits.head_bytes_max),
      policy_(make_policy(policy_capacity(tiers_), kPolicySeed)) {
  const auto durable = std::find_if(tiers_.begin(), tiers_.end(), [](const auto& tier) { return tier->durable(); });
  fill_tier_ = durable == tiers_.end() ? 0 : static_cast<size_t>(durable - tiers_.begin());
  for (const auto& tier : tiers_) {
    reclaim_mutexes_.push_back(std::make_unique<std::mutex>());
    tier_metrics_.emplace_back(deps.metrics, *tier);
  }
}

Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(std::vector<config::TierSettings> tiers, const StoreLimits& limits,
                                           StoreDeps deps) {
  const auto rank = [](config::Medium medium) {
    return medium == config::Medium::kMemory ? 0 : medium == config::Medium::kPmem ? 1 : 2;
  };
  std::stable_sort(tiers.begin(), tiers.end(),
                   [&](const auto& a, const auto& b) { return rank(a.medium) < rank(b.medium); });
  std::vector<TierPlan> plans;
  for (const auto& settings : tiers) {
    NEZHA_TRY(auto medium, make_medium(settings));
    const uint64_t beside_bytes = medium->durable() ? RunMarkers::kBytes : 0;
    plans.push_back({std::move(medium), settings.size_bytes, 0, beside_bytes});
  }
  return open(std::move(plans), limits, deps);
}

Result<std::unique_ptr<Store>> Store::open(std::vector<TierPlan> plans, const StoreLimits& limits, StoreDeps deps) {
  NEZHA_CHECK(!plans.empty() && plans.size() <= limits::kTiersMax, "there is a tier, and not too many");
  std::vector<Medium*> media;  // which the tiers own
  for (const auto& plan : plans) media.push_back(plan.medium.get());
  RunMarkers markers(media, draw_run_id);
  std::vector<std::unique_ptr<Tier>> tiers;
  for (auto& plan : plans) {
    const auto id = static_cast<uint8_t>(tiers.size());
    const TierOptions options{id, plan.size_bytes, plan.segment_bytes, plan.beside_bytes,
                              !markers.distrust(id).empty()};
    NEZHA_TRY(auto tier, Tier::open(std::move(plan.medium), options, deps.clock));
    tiers.push_back(std::move(tier));
  }
  std::unique_ptr<Store> store(new Store(std::move(tiers), limits, deps));
  for (const auto& tier : store->tiers_) store->report_recovery(*tier, markers.distrust(tier->id()));
  store->begin_run(markers);
  store->recover();
  if (store->tiers_.size() > 1) {
    store->promoter_ =
        std::jthread([raw = store.get()](const std::stop_token& stop) { raw->promote_until_stopped(stop); });
  }
  return store;
}

// Before anything is served or forbidden. A tier that cannot be told takes no part.
void Store::begin_run(RunMarkers& markers) {
  for (;;) {
    std::vector<size_t> members;
    for (const auto& tier : tiers_) {
      if (tier->durable() && !tier->abandoned()) members.push_back(tier->id());
    }
    const auto unmarked = markers.begin(members);
    if (!unmarked) break;
    abandon(*tiers_[unmarked->tier], unmarked->reason);
  }
  for (const auto& path : markers.set_aside())
    deps_.log.warning("a marker of another version or not of ours was set aside", {{"path", path}});
}

// `distrust`: why nothing in it is believed; empty: for no reason outside of it.
void Store::report_recovery(const Tier& tier, const std::string& distrust) {
  const TierRecovery& recovery = tier.recovery();
  for (const auto& path : recovery.set_aside)
    deps_.log.warning("a segment of another version or not of ours was set aside", {{"path", path}});
  if (recovery.damaged > 0)
    deps_.log.warning("damaged segments were removed",
                      {{"tier", tier.name()}, {"segments", std::to_string(recovery.damaged)}});
  if (recovery.distrusted > 0 && !distrust.empty())
    deps_.log.warning("a tier may hold what must not come back and starts empty",
                      {{"tier", tier.name()}, {"reason", distrust}, {"segments", std::to_string(recovery.distrusted)}});
  if (recovery.distrusted > 0 && distrust.empty())
    deps_.log.warning("a segment that is lost may have held what must not come back; the tier starts empty",
                      {{"tier", tier.name()}, {"segments", std::to_string(recovery.distrusted)}});
  if (tier.abandoned()) report_not_removed(tier);
}

void Store::recover() {
  const SteadyTime begin = deps_.clock.now();
  size_t records = 0;
  std::vector<std::pair<KeyHash, uint64_t>> forgotten;
  const auto visit = [&](Tier::Which which, const Tier::Visit& each) {
    for (auto& tier : tiers_) {
      // What is left of a tier that could not be read whole is not known to be allowed.
      if (tier->abandoned()) continue;
      const Result<void> visited = tier->visit_recovered(each, which);
      if (visited) continue;
      abandon(*tier, visited.error().message);
      const auto more = index_.forget_tier(tier->id());
      forgotten.insert(forgotten.end(), more.begin(), more.end());
    }
  };
  visit(Tier::Which::kTombstones, [&](const Record& record, const Place&) { index_.recover_tombstone(record); });
  visit(Tier::Which::kAll, [&](const Record& record, const Place& place) {
    ++records;
    if (!is_tombstone(record)) index_.recover(record, place);
  });
  index_.finish_recovery();
  for (const auto& [hash, generation] : forgotten) forbid(RecordKind::kGenerationTombstone, hash, generation, false);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(deps_.clock.now() - begin);
  deps_.log.info("tiers read in", {{"responses", std::to_string(index_.generation_count())},
                                   {"records", std::to_string(records)},
                                   {"ms", std::to_string(took.count())}});
}

StoredHeadPtr Store::find_now(const CacheKey& key, const http::Fields& request, bool& must_load) {
  const KeyHash hash = hash_of(key);
  must_load = false;
  std::vector<StoredHeadPtr> decoded;  // the index may let go of them at once
  for (;;) {
    Index::Found found = index_.find(hash, key, request, true, decoded);
    if (!found.undecoded) return std::move(found.head);
    const bool ready = tiers_[found.record.place->tier()]->is_ready(*found.record.place);
    StoredHeadPtr head = ready ? decode(hash, found.undecoded, found.record) : nullptr;
    if (!head) {  // to be brought in, or to be dropped, by one who may block
      must_load = true;
      return nullptr;
    }
    decoded.push_back(std::move(head));
  }
}

net::Task<StoredHeadPtr> Store::find(const CacheKey& key, const http::Fields& request) {
  const KeyHash hash = hash_of(key);
  std::vector<StoredHeadPtr> decoded;  // the index may let go of them at once
  for (;;) {
    Index::Found found = index_.find(hash, key, request, false, decoded);
    if (!found.undecoded) co_return std::move(found.head);
    std::function<void()> work = [&] {
      ++cold_loads_;
      const Result<void> ready = tiers_[found.record.place->tier()]->make_ready(*found.record.place);
      StoredHeadPtr head = ready ? decode(hash, found.undecoded, found.record) : nullptr;
      if (head)
        decoded.push_back(std::move(head));
      else
        drop_damaged(hash, found.undecoded);
    };
    co_await deps_.loaders.run(std::move(work));
  }
}

// Null: it is damaged.
StoredHeadPtr Store::decode(const KeyHash& hash, uint64_t generation, const PinnedBytes& record) {
  auto head = decode_head(record.bytes, generation);
  if (!head) return nullptr;
  index_.set_decoded(hash, *record.place, head.value());
  return std::move(head.value());
}

// Here and below: first the tombstone, then the index. What the index does not know, an invalidation does not forbid.
void Store::drop_damaged(const KeyHash& hash, uint64_t generation) {
  if (index_.is_gone(hash, generation)) return;
  deps_.log.warning("a stored response is damaged and was dropped", {});
  forbid(RecordKind::kGenerationTombstone, hash, generation, false);
  index_.remove(hash, generation);
}

void Store::note_request(const CacheKey& key, const StoredHeadPtr& head) {
  policy_->on_request(hash_of(key).query, head && head->total_bytes ? *head->total_bytes : 0);
}

std::optional<PinnedBody> Store::pin(const CacheKey& key, const StoredHeadPtr& head, http::ByteRange range) {
  return index_.pin(hash_of(key), head->generation, range);
}

bool Store::is_ready(const PinnedBytes& piece) const {
  return !piece.place || tiers_[piece.place->tier()]->is_ready(*piece.place);
}

Result<void> Store::load_piece(const Place& place) {
  const SteadyTime begin = deps_.clock.now();
  Result<void> ready = tiers_[place.tier()]->make_ready(place);
  tier_metrics_[place.tier()].read_seconds.observe(std::chrono::duration<double>(deps_.clock.now() - begin).count());
  return ready;
}

net::Task<Result<void>> Store::make_ready(const PinnedBytes& piece) {
  Result<void> result = ok();
  std::function<void()> work = [&] { result = load_piece(*piece.place); };
  ++cold_loads_;
  co_await deps_.loaders.run(std::move(work));
  co_return result;
}

net::Task<Result<void>> Store::make_ready(const std::vector<PinnedBytes>& pieces, size_t index) {
  Result<void> result = ok();
  std::function<void()> work = [&] {
    const size_t end = std::min(pieces.size(), index + 1 + limits::kPiecesAhead);
    for (size_t i = index + 1; i < end; ++i) {
      if (pieces[i].place) tiers_[pieces[i].place->tier()]->prefetch(*pieces[i].place);
    }
    result = load_piece(*pieces[index].place);
  };
  ++cold_loads_;
  co_await deps_.loaders.run(std::move(work));
  co_return result;
}

std::optional<Queue> Store::admit(const CacheKey& key, uint64_t size_bytes) {
  uint64_t free_bytes = 0;
  for (size_t i = fill_tier_; i < tiers_.size(); ++i)
    free_bytes += tiers_[i]->abandoned() ? 0 : tiers_[i]->free_bytes();
  return policy_->admit(hash_of(key).query, size_bytes, free_bytes);
}

bool Store::take_fill_memory(uint64_t size_bytes) {
  if (fill_bytes_.fetch_add(size_bytes) + size_bytes <= limits_.fill_bytes_max) return true;
  fill_bytes_ -= size_bytes;
  return false;
}

// Appends, reclaiming segments as needed.
Result<Tier::Appended> Store::append(Tier& tier, Queue queue, const Record& record, std::string_view bytes) {
  for (;;) {
    auto appended = tier.append(queue, record, bytes);
    if (appended || appended.error().remedy != Remedy::kRetryLater) return appended;
    if (const auto reason = tier.take_growth_failure())
      deps_.log.warning("a tier cannot grow to its size: it goes on with what it has",
                        {{"tier", tier.name()},
                         {"reason", *reason},
                         {"used_bytes", std::to_string(tier.used_bytes())},
                         {"size_bytes", std::to_string(tier.size_bytes())}});
    NEZHA_TRY(make_room(tier));
  }
}

// Every generation under the key, with its head: that tells variants from versions. The heads may be gone from the
// index by the time this returns.
std::vector<Index::Entry> Store::decoded_entries(const KeyHash& hash) {
  auto entries = index_.entries(hash);
  for (auto& entry : entries) {
    if (entry.head) continue;
    const PinnedBytes& record = entry.record;
    const Result<void> ready = tiers_[record.place->tier()]->make_ready(*record.place);
    if (ready) entry.head = decode(hash, entry.generation, record);
    if (!entry.head) drop_damaged(hash, entry.generation);
  }
  std::erase_if(entries, [](const Index::Entry& entry) { return !entry.head; });
  return entries;
}

Result<StoredHeadPtr> Store::open_generation(const FillTicket& ticket, const CacheKey& key, const StoredHeadPtr& head,
                                             Queue queue, bool may_join) {
  std::lock_guard one_by_one(open_mutexes_[ticket.key.query % open_mutexes_.size()]);
  if (ticket.doomed) return fail(Remedy::kGiveUp, "invalidated meanwhile");
  if (index_.entry_bytes() > limits_.entry_bytes_max) (void)shrink_index();
  auto next = std::make_shared<StoredHead>(*head);
  next->key = key;
  next->generation = ticket.generation;
  for (const auto& entry : decoded_entries(ticket.key)) {
    if (entry.head->key != key || !same_variant(*entry.head, *head)) continue;
    if (may_join && same_generation(*entry.head, *head)) {
      // RFC 9111 §3.4: the newer answer's fields, without losing what only the whole answer carried.
      const auto merged = std::make_shared<StoredHead>(
          *refreshed(*entry.head, head->fields, head->credentials, head->response_time, head->response_time,
                     std::max(entry.head->lifetime.initial_age, head->lifetime.initial_age)));
      take_over_checksums(*merged, *head);
      if (worth_writing(*entry.head, *merged)) {
        const Record record{RecordKind::kHead, ticket.key, entry.generation, entry.revision + 1};
        NEZHA_TRY(const auto appended, append_head(Queue::kMain, record, *merged));
        if (!index_.replace_head(ticket.key, merged, &appended.place))
          forbid(RecordKind::kGenerationTombstone, ticket.key, entry.generation, false);
      } else {
        index_.replace_head(ticket.key, merged, nullptr);
      }
      return StoredHeadPtr(merged);
    }
    // An older answer that took longer to arrive must not replace a newer one.
    if (entry.head->response_time > head->response_time) return fail(Remedy::kGiveUp, "a newer answer is stored");
    forbid(RecordKind::kGenerationTombstone, ticket.key, entry.generation, false);
    index_.remove(ticket.key, entry.generation);
  }
  const Record record{RecordKind::kHead, ticket.key, ticket.generation, 0};
  NEZHA_TRY(const auto appended, append_head(queue, record, *next));
  if (index_.insert(ticket, appended.place, next)) return StoredHeadPtr(std::move(next));
  // An invalidation came meanwhile. Its own tombstone reaches only as far as where records lay when it was written.
  forbid(RecordKind::kGenerationTombstone, ticket.key, ticket.generation, false);
  return fail(Remedy::kGiveUp, "invalidated meanwhile");
}

// Of a head whose writing failed half-way nobody knows whether it is there after a restart.
Result<Tier::Appended> Store::append_head(Queue queue, const Record& record, const StoredHead& head) {
  auto appended = append(fill_tier(), queue, record, encode_head(head));
  if (!appended && appended.error().remedy != Remedy::kRetryLater)
    forbid(RecordKind::kGenerationTombstone, record.key, record.generation, false);
  return appended;
}

Result<Tier::Appended> Store::append_extent(const FillTicket& ticket, uint64_t generation, Queue queue, uint64_t offset,
                                            std::string_view bytes) {
  return append(fill_tier(), queue, {RecordKind::kExtent, ticket.key, generation, offset}, bytes);
}

// Writes a tombstone to every tier that may hold what it forbids. A tier that cannot take it must not be read again.
void Store::forbid(RecordKind kind, const KeyHash& hash, uint64_t generation, bool durable) {
  for (auto& tier : tiers_) {
    if (takes_tombstones(*tier)) forbid_in(*tier, {kind, hash, generation, 0}, durable);
  }
}

bool Store::takes_tombstones(const Tier& tier) { return tier.durable() && !tier.abandoned() && !tier.is_empty(); }

void Store::forbid_in(Tier& tier, const Record& tombstone, bool durable) {
  Result<void> written = tier.append_tombstone(tombstone, durable);
  // Readers may hold every segment for a moment: that is no reason to give the tier up.
  for (int turn = 0; !written && written.error().remedy == Remedy::kRetryLater && turn < kForbidTurnsMax; ++turn) {
    if (turn > 0 && !make_room(tier)) std::this_thread::sleep_for(kForbidPause);
    written = tier.append_tombstone(tombstone, durable);
  }
  if (!written) abandon(tier, written.error().message);
}

net::Task<StoredHeadPtr> Store::refresh(const CacheKey& key, StoredHeadPtr old_head, StoredHeadPtr new_head) {
  const KeyHash hash = hash_of(key);
  auto next = std::make_shared<StoredHead>(*new_head);
  next->key = key;
  next->generation = old_head->generation;
  const StoredHeadPtr head = std::move(next);
  if (!index_.replace_head(hash, head, nullptr)) co_return nullptr;
  if (!worth_writing(*old_head, *head)) co_return head;
  std::function<void()> work = [&] {
    std::lock_guard one_by_one(open_mutexes_[hash.query % open_mutexes_.size()]);
    for (const auto& entry : index_.entries(hash)) {
      if (entry.generation != head->generation) continue;
      const Record record{RecordKind::kHead, hash, entry.generation, entry.revision + 1};
      // Where it is not written, the old head must not be believed after a restart.
      const auto appended = append(fill_tier(), Queue::kMain, record, encode_head(*head));
      if (!appended || !index_.replace_head(hash, head, &appended.value().place))
        forbid(RecordKind::kGenerationTombstone, hash, entry.generation, false);
    }
  };
  co_await deps_.workers.run(std::move(work));
  co_return head;
}

net::Task<> Store::keep_or_drop(const CacheKey& key, StoredHeadPtr old_head, StoredHeadPtr new_head) {
  // A tier may be lost, and with it the newer head: the older one in another tier must not make it everybody's again.
  const auto durable = std::count_if(tiers_.begin(), tiers_.end(), [](const auto& tier) { return tier->durable(); });
  const bool closes = old_head->credentials == Credentials::kNone && new_head->credentials != Credentials::kNone;
  if (may_stay(*old_head, *new_head) && !(closes && durable > 1))
    co_await refresh(key, old_head, new_head);
  else
    co_await drop(key, old_head);
}

net::Task<> Store::drop(const CacheKey& key, StoredHeadPtr head) {
  const KeyHash hash = hash_of(key);
  std::function<void()> work = [&] {
    if (index_.is_gone(hash, head->generation)) return;  // one of many who read it has done this
    forbid(RecordKind::kGenerationTombstone, hash, head->generation, true);
    index_.remove(hash, head->generation);
  };
  co_await deps_.workers.run(std::move(work));
}

std::vector<Store::TierState> Store::tier_states() const {
  std::vector<TierState> out;
  for (const auto& tier : tiers_) {
    out.push_back({tier->name(), tier->size_bytes(), tier->used_bytes(), tier->appended_bytes(), tier->kept_bytes(),
                   tier->abandoned()});
  }
  return out;
}

}  // namespace nezha::cache
