// What the index knows of single records: for reclaiming a segment, and for reading a tier in after a restart.
#include <algorithm>

#include "cache/index/index.h"

namespace nezha::cache {
namespace {

// Node of the map, its bucket, and what malloc adds.
constexpr uint64_t kNodeOverheadBytes = 40;

}  // namespace

uint64_t Index::entry_bytes() const { return generation_count() * (sizeof(Generation) + kNodeOverheadBytes); }

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

void Index::move(const Record& record, const Place& from, const Place& to) {
  Shard& shard = shard_of(record.key.path);
  std::lock_guard lock(shard.mutex);
  Generation* generation = find_generation(shard, record.key, record.generation);
  if (!generation) return;
  if (record.kind == RecordKind::kHead) {
    if (generation->head_record == from) relocate(generation->head_record, to);
    return;
  }
  for (Extent& extent : generation->extents) {
    if (extent.place == from) relocate(extent.place, to);
  }
}

void Index::relocate(Place& place, const Place& to) {
  retain(to);
  release(place);
  place = to;
}

bool Index::forget(const Record& record, const Place& place) {
  Shard& shard = shard_of(record.key.path);
  std::lock_guard lock(shard.mutex);
  const auto [first, last] = shard.generations.equal_range(record.key.path);
  for (auto it = first; it != last; ++it) {
    Generation& generation = it->second;
    if (generation.id != record.generation || generation.query != record.key.query) continue;
    bool useless = false;
    if (record.kind == RecordKind::kHead) {
      useless = generation.head_record == place;
    } else {
      auto& extents = generation.extents;
      const auto at = std::find_if(extents.begin(), extents.end(), [&](const Extent& e) { return e.place == place; });
      if (at == extents.end()) return false;
      release(at->place);
      extents.erase(at);
      useless = extents.empty();
    }
    if (useless) erase(shard, it);
    return useless;
  }
  return false;
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

void Index::recover(const Record& record, const Place& place) {
  raise(next_generation_, record.generation + 1);
  Shard& shard = shard_of(record.key.path);
  std::lock_guard lock(shard.mutex);
  if (shard.dead_generations.contains(record.generation)) return;
  const auto dead = shard.dead_paths.find(record.key.path);
  if (dead != shard.dead_paths.end() && record.generation <= dead->second) return;
  Generation* generation = find_generation(shard, record.key, record.generation);
  if (!generation) {
    Generation fresh;
    fresh.query = record.key.query;
    fresh.id = record.generation;
    generation = &shard.generations.emplace(record.key.path, std::move(fresh))->second;
    ++generations_;
  }
  if (record.kind == RecordKind::kExtent) return insert_extent(*generation, {record.offset, place});
  // Of several revisions the latest counts; of two copies the one written later.
  if (generation->has_head && record.offset < generation->revision) return;
  retain(place);
  if (generation->has_head) release(generation->head_record);
  generation->has_head = true;
  generation->head_record = place;
  generation->revision = static_cast<uint32_t>(record.offset);
}

void Index::finish_recovery() {
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    for (auto it = shard.generations.begin(); it != shard.generations.end();) {
      const auto next = std::next(it);
      if (!it->second.has_head) erase(shard, it);
      it = next;
    }
    shard.dead_paths.clear();
    shard.dead_generations.clear();
  }
}

}  // namespace nezha::cache
