// What the index knows of single records: for reclaiming a segment, and for reading a tier in after a restart.
#include <algorithm>

#include "cache/index/index.h"
#include "nezha/base/check.h"

namespace nezha::cache {
namespace {

// Node of the map, its bucket, and what malloc adds.
constexpr uint64_t kNodeOverheadBytes = 40;
constexpr size_t kRecoverAtOnce = 4096;  // of a shard: 14 MiB in all, given back at the end

}  // namespace

uint64_t Index::entry_bytes() const {
  const uint64_t generations = generation_count();
  const uint64_t extents = extents_.load(std::memory_order_relaxed);
  // One extent has its place in the entry; more of them lie outside, in vectors that grow by half.
  const uint64_t outside = extents > generations ? extents - generations : 0;
  return generations * (sizeof(Generation) + kNodeOverheadBytes) + outside * sizeof(Extent) * 3 / 2;
}

bool Index::covered_elsewhere(const Generation& generation, const Extent& extent) const {
  return std::any_of(generation.extents.begin(), generation.extents.end(), [&](const Extent& other) {
    return other.place.tier() != extent.place.tier() && tiers_[other.place.tier()]->durable() &&
           other.offset <= extent.offset && other.end() >= extent.end();
  });
}

Index::Liveness Index::liveness(const Record& record, const Place& place) {
  Shard& shard = shard_of(record.key.path);
  std::lock_guard lock(shard.mutex);
  const Generation* generation = find_generation(shard, record.key, record.generation);
  Liveness out;
  if (!generation) return out;
  out.reads = generation->reads;
  out.revision = generation->revision;
  out.heads_left = without(*generation, record, place).heads_left;
  if (record.kind == RecordKind::kHead) {
    out.live = generation->has_head && generation->head_record == place;
    return out;
  }
  for (const Extent& extent : generation->extents) {
    if (extent.place != place) continue;
    out.live = true;
    out.elsewhere = covered_elsewhere(*generation, extent);
  }
  return out;
}

// What forgetting the record would mean.
Index::Forgotten Index::without(const Generation& generation, const Record& record, const Place& place) {
  if (record.kind == RecordKind::kHead)  // older ones of it may be anywhere
    return {generation.head_record == place, generation.head_record == place && generation.has_old_heads};
  const bool last = generation.extents.size() == 1 && generation.extents.front().place == place;
  const bool apart = generation.head_record.segment != place.segment || generation.has_old_heads;
  return {last, last && generation.has_head && apart};
}

unsigned Index::reads(const KeyHash& hash, uint64_t id) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  const Generation* generation = find_generation(shard, hash, id);
  return generation ? generation->reads : 0;
}

bool Index::needs_copy(const Record& record, const Place& place, uint8_t tier) {
  Shard& shard = shard_of(record.key.path);
  std::lock_guard lock(shard.mutex);
  const Generation* generation = find_generation(shard, record.key, record.generation);
  if (!generation) return false;
  bool here = false, there = false;
  for (const Extent& extent : generation->extents) {
    here |= extent.place == place && extent.offset == record.offset;
    there |= extent.place.tier() == tier && extent.offset <= record.offset &&
             extent.end() >= record.offset + place.size_bytes;
  }
  return here && !there;
}

void Index::lower_reads(const KeyHash& hash, uint64_t id) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  Generation* generation = find_generation(shard, hash, id);
  if (generation && generation->reads > 0) --generation->reads;
}

bool Index::move(const Record& record, const Place& from, const Place& to) {
  Shard& shard = shard_of(record.key.path);
  std::lock_guard lock(shard.mutex);
  Generation* generation = find_generation(shard, record.key, record.generation);
  if (!generation) return false;
  if (record.kind == RecordKind::kHead) {
    if (generation->head_record == from) relocate(generation->head_record, to);
    return true;
  }
  for (Extent& extent : generation->extents) {
    if (extent.place == from) relocate(extent.place, to);
  }
  return true;
}

void Index::relocate(Place& place, const Place& to) {
  retain(to);
  release(place);
  place = to;
}

Index::Forgotten Index::forget(const Record& record, const Place& place, bool forbidden) {
  Shard& shard = shard_of(record.key.path);
  std::lock_guard lock(shard.mutex);
  const auto [first, last] = shard.generations.equal_range(record.key.path);
  for (auto it = first; it != last; ++it) {
    Generation& generation = it->second;
    if (generation.id != record.generation || generation.query != record.key.query) continue;
    const Forgotten out = without(generation, record, place);
    if (out.dropped) {
      if (out.heads_left && !forbidden) shard.unforbidden.insert(record.key.path);
      erase(shard, it);
    } else if (record.kind == RecordKind::kExtent) {
      auto& extents = generation.extents;
      const auto at = std::find_if(extents.begin(), extents.end(), [&](const Extent& e) { return e.place == place; });
      if (at == extents.end()) return out;
      release(at->place);
      extents.erase(at);
      --extents_;
    }
    return out;
  }
  return {};
}

namespace {

void raise(std::atomic<uint64_t>& value, uint64_t at_least) {
  uint64_t seen = value.load();
  while (seen < at_least && !value.compare_exchange_weak(seen, at_least)) {
  }
}

}  // namespace

void Index::recover_tombstone(const Record& tombstone) {
  raise(next_generation_, tombstone.generation + 1);
  Shard& shard = shard_of(tombstone.key.path);
  std::lock_guard lock(shard.mutex);
  if (tombstone.kind == RecordKind::kPathTombstone) {
    uint64_t& up_to = shard.dead_paths[tombstone.key.path];
    up_to = std::max(up_to, tombstone.generation);
  } else {
    shard.dead_generations.emplace(tombstone.generation, 0);
  }
}

// Shard by shard: one of them fits the processor's cache, all of them do not.
void Index::recover(const Record& record, const Place& place) {
  raise(next_generation_, record.generation + 1);
  auto& recovering = shard_of(record.key.path).recovering;
  if (recovering.empty()) recovering.reserve(kRecoverAtOnce);
  recovering.emplace_back(record, place);
  if (recovering.size() == kRecoverAtOnce) enter_recovered();
}

void Index::enter_recovered() {
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    const auto heads = std::count_if(shard.recovering.begin(), shard.recovering.end(),
                                     [](const auto& each) { return each.first.kind == RecordKind::kHead; });
    if (heads > 0) shard.generations.reserve(shard.generations.size() + static_cast<size_t>(heads));
    Generation* last = nullptr;  // an extent usually follows its head
    for (const auto& [record, place] : shard.recovering) {
      if (is_dead(shard, record)) continue;
      if (!last || last->id != record.generation || last->query != record.key.query)
        last = &generation_of(shard, record);
      enter(shard, *last, record, place);
    }
    shard.recovering.clear();
  }
}

bool Index::is_dead(const Shard& shard, const Record& record) {
  if (!shard.dead_generations.empty() && shard.dead_generations.contains(record.generation)) return true;
  if (shard.dead_paths.empty()) return false;
  const auto dead = shard.dead_paths.find(record.key.path);
  return dead != shard.dead_paths.end() && record.generation <= dead->second;
}

// The one it belongs to, which may be new.
Index::Generation& Index::generation_of(Shard& shard, const Record& record) {
  if (Generation* known = find_generation(shard, record.key, record.generation)) return *known;
  Generation fresh;
  fresh.query = record.key.query;
  fresh.id = record.generation;
  ++generations_;
  ++shard.headless;
  return shard.generations.emplace(record.key.path, std::move(fresh))->second;
}

void Index::enter(Shard& shard, Generation& generation, const Record& record, const Place& place) {
  if (record.kind == RecordKind::kExtent) return insert_extent(generation, {record.offset, place});
  // Of several revisions the latest counts; of two copies, left by a death while a segment was reclaimed, the one that
  // was written later.
  generation.has_old_heads |= generation.has_head;
  if (generation.has_head && record.offset < generation.revision) return;
  retain(place);
  if (generation.has_head)
    release(generation.head_record);
  else
    --shard.headless;
  generation.has_head = true;
  generation.head_record = place;
  generation.revision = static_cast<uint32_t>(record.offset);
}

std::vector<std::pair<KeyHash, uint64_t>> Index::forget_tier(uint8_t tier) {
  std::vector<std::pair<KeyHash, uint64_t>> out;
  enter_recovered();
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    for (auto it = shard.generations.begin(); it != shard.generations.end();) {
      const auto next = std::next(it);
      const Generation& generation = it->second;
      const bool here = (generation.has_head && generation.head_record.tier() == tier) ||
                        std::any_of(generation.extents.begin(), generation.extents.end(),
                                    [&](const Extent& extent) { return extent.place.tier() == tier; });
      if (here && !generation.has_head) --shard.headless;
      if (here) out.emplace_back(KeyHash{it->first, generation.query}, generation.id);
      if (here) erase(shard, it);
      it = next;
    }
  }
  return out;
}

void Index::finish_recovery() {
  enter_recovered();
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    for (auto it = shard.generations.begin(); shard.headless > 0 && it != shard.generations.end();) {
      const auto next = std::next(it);
      if (!it->second.has_head) erase(shard, it), --shard.headless;
      it = next;
    }
    NEZHA_CHECK(shard.headless == 0, "every generation without a head was found");
    shard.dead_paths.clear();
    shard.dead_generations.clear();
    shard.recovering.shrink_to_fit();
  }
}

}  // namespace nezha::cache
