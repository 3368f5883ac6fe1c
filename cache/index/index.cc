#include "cache/index/index.h"

#include <xxhash.h>

#include <algorithm>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr uint8_t kReadsMax = 7;
constexpr size_t kSliceEntries = 256;
constexpr size_t kSliceBuckets = 4096;  // most may be empty

uint64_t head_cost(const StoredHead& head) {
  return sizeof(StoredHead) + head.fields.memory_bytes() + head.lines.capacity() + head.partial_lines.capacity() +
         head.key.path.capacity() + head.key.query.capacity();
}

}  // namespace

uint64_t hash_of_path(std::string_view path) { return XXH3_64bits(path.data(), path.size()); }

KeyHash hash_of(const CacheKey& key) {
  const uint64_t path = hash_of_path(key.path);
  return {path, XXH3_64bits_withSeed(key.query.data(), key.query.size(), path)};
}

Index::Index(std::vector<Tier*> tiers, uint64_t head_bytes_max)
    : tiers_(std::move(tiers)), shard_head_bytes_max_(head_bytes_max / kShards) {}

Index::Generation* Index::find_generation(Shard& shard, const KeyHash& hash, uint64_t id) {
  const auto [first, last] = shard.generations.equal_range(hash.path);
  for (auto it = first; it != last; ++it) {
    if (it->second.id == id && it->second.query == hash.query) return &it->second;
  }
  return nullptr;
}

void Index::set_head(Shard& shard, Generation& generation, StoredHeadPtr head) {
  const uint64_t before = generation.head ? head_cost(*generation.head) : 0;
  const uint64_t after = head ? head_cost(*head) : 0;
  generation.head = std::move(head);
  generation.used = true;
  shard.head_bytes += after - before;
  head_bytes_ += after - before;
}

void Index::erase(Shard& shard, Map::iterator at) {
  const Generation& generation = at->second;
  if (generation.has_head) release(generation.head_record);
  for (const Extent& extent : generation.extents) release(extent.place);
  extents_ -= generation.extents.size();
  set_head(shard, at->second, nullptr);
  shard.generations.erase(at);
  --generations_;
}

// Drops decoded heads that nobody used since the last round, until the budget holds; the hand goes round like a
// clock's.
void Index::sweep_heads(Shard& shard) {
  const size_t buckets = shard.generations.bucket_count();
  for (size_t looked = 0; looked < 2 * buckets && shard.head_bytes > shard_head_bytes_max_; ++looked) {
    shard.sweep_bucket = (shard.sweep_bucket + 1) % buckets;
    for (auto it = shard.generations.begin(shard.sweep_bucket); it != shard.generations.end(shard.sweep_bucket); ++it) {
      Generation& generation = it->second;
      if (!generation.head) continue;
      if (generation.used)
        generation.used = false;
      else
        set_head(shard, generation, nullptr), generation.used = false;
    }
  }
}

Index::Found Index::find(const KeyHash& hash, const CacheKey& key, const http::Fields& request, bool count,
                         const std::vector<StoredHeadPtr>& decoded) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  Found out;
  uint64_t newest = 0;
  Generation* chosen = nullptr;
  const auto head_of = [&](const Generation& generation) -> StoredHeadPtr {
    if (generation.head) return generation.head;
    const auto same = [&](const StoredHeadPtr& head) { return head->generation == generation.id; };
    const auto known = std::find_if(decoded.begin(), decoded.end(), same);
    return known == decoded.end() ? nullptr : *known;
  };
  const auto [first, last] = shard.generations.equal_range(hash.path);
  for (auto it = first; it != last; ++it) {
    Generation& generation = it->second;
    if (generation.query != hash.query || !generation.has_head || generation.id <= newest) continue;
    // One that is not decoded might be selected: it has to be looked at before an older one is taken.
    StoredHeadPtr head = head_of(generation);
    if (head && (head->key != key || !selects(*head, request))) continue;
    newest = generation.id;
    chosen = &generation;
    out.head = std::move(head);
  }
  if (!chosen) return out;
  if (out.head) {
    chosen->used = true;
    if (count && chosen->reads < kReadsMax) ++chosen->reads;
    return out;
  }
  out.undecoded = chosen->id;
  out.record = tiers_[chosen->head_record.tier()]->pin(chosen->head_record);
  return out;
}

void Index::set_decoded(const KeyHash& hash, const Place& record, const StoredHeadPtr& head) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  Generation* generation = find_generation(shard, hash, head->generation);
  if (!generation || generation->head || generation->head_record != record) return;
  set_head(shard, *generation, head);
  if (shard.head_bytes > shard_head_bytes_max_) sweep_heads(shard);
}

std::optional<PinnedBody> Index::pin(const KeyHash& hash, uint64_t id, http::ByteRange range) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  const Generation* generation = find_generation(shard, hash, id);
  if (!generation) return std::nullopt;
  PinnedBody body{range, {}};
  const auto& extents = generation->extents;
  for (uint64_t at = range.begin; at < range.end;) {
    // Of the extents that hold `at`, one in the fastest tier, and of those the one that reaches farthest.
    auto it = std::upper_bound(extents.begin(), extents.end(), at,
                               [](uint64_t offset, const Extent& e) { return offset < e.offset; });
    // Within a tier no extent lies inside another: the nearest one in front of `at` is the one that reaches farthest.
    const Extent* best = nullptr;
    uint32_t tiers_left = (1u << tiers_.size()) - 1;
    while (it != extents.begin() && tiers_left != 0) {
      --it;
      if (it->offset + limits::kPieceBytes <= at) break;  // no record is longer than a piece
      const uint32_t bit = 1u << it->place.tier();
      if ((tiers_left & bit) == 0) continue;
      tiers_left &= ~bit;
      if (it->end() > at && (!best || it->place.tier() < best->place.tier())) best = &*it;
    }
    if (!best) return std::nullopt;
    PinnedBytes pinned = tiers_[best->place.tier()]->pin(best->place);
    pinned.bytes = pinned.bytes.substr(at - best->offset, std::min(best->end(), range.end) - at);
    at += pinned.bytes.size();
    body.pieces.push_back(std::move(pinned));
  }
  return body;
}

void skip_bytes(PinnedBody& body, uint64_t size_bytes) {
  auto piece = body.pieces.begin();
  for (; piece != body.pieces.end() && size_bytes >= piece->bytes.size(); ++piece) {
    body.range.begin += piece->bytes.size();
    size_bytes -= piece->bytes.size();
  }
  body.pieces.erase(body.pieces.begin(), piece);
  if (body.pieces.empty()) return;
  body.range.begin += size_bytes;
  body.pieces.front().bytes.remove_prefix(size_bytes);
}

std::optional<http::ByteRange> Index::missing(const KeyHash& hash, uint64_t id, http::ByteRange range) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  const Generation* generation = find_generation(shard, hash, id);
  if (!generation) return std::nullopt;
  http::ByteRange out{range.end, range.begin};
  uint64_t at = range.begin;
  const auto hole = [&](uint64_t begin, uint64_t end) {
    out.begin = std::min(out.begin, begin);
    out.end = std::max(out.end, end);
  };
  for (const Extent& extent : generation->extents) {
    if (at >= range.end) break;
    if (extent.offset > at) hole(at, std::min(extent.offset, range.end));
    at = std::max(at, extent.end());
  }
  if (at < range.end) hole(at, range.end);
  return out.begin < out.end ? std::optional(out) : std::nullopt;
}

std::shared_ptr<FillTicket> Index::begin_fill(const KeyHash& hash, std::string path) {
  Shard& shard = shard_of(hash.path);
  auto* raw = new FillTicket;
  raw->key = hash;
  raw->path = std::move(path);
  std::shared_ptr<FillTicket> ticket(raw, [&shard, path = hash.path](FillTicket* ended) {
    {
      std::lock_guard lock(shard.mutex);
      const auto [first, last] = shard.fills.equal_range(path);
      const auto it = std::find_if(first, last, [&](const auto& entry) { return entry.second == ended; });
      if (it != last) shard.fills.erase(it);
    }
    delete ended;
  });
  std::lock_guard lock(shard.mutex);
  // Under the lock: an invalidation either sees the ticket, or its tombstone has a lower number.
  raw->generation = next_generation();
  shard.fills.emplace(hash.path, raw);
  return ticket;
}

bool Index::is_filling(const KeyHash& hash) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  const auto [first, last] = shard.fills.equal_range(hash.path);
  return std::any_of(first, last, [](const auto& entry) { return !entry.second->ended; });
}

std::vector<Index::Entry> Index::entries(const KeyHash& hash) {
  Shard& shard = shard_of(hash.path);
  std::vector<Entry> out;
  {
    std::lock_guard lock(shard.mutex);
    const auto [first, last] = shard.generations.equal_range(hash.path);
    for (auto it = first; it != last; ++it) {
      const Generation& generation = it->second;
      if (generation.query != hash.query || !generation.has_head) continue;
      out.push_back({generation.id, {}, generation.revision, generation.head});
      if (!generation.head) out.back().record = tiers_[generation.head_record.tier()]->pin(generation.head_record);
    }
  }
  std::sort(out.begin(), out.end(), [](const Entry& a, const Entry& b) { return a.generation > b.generation; });
  return out;
}

std::vector<std::string> Index::filling(size_t at) {
  Shard& shard = shards_[at];
  std::vector<std::string> out;
  std::lock_guard lock(shard.mutex);
  for (const auto& [path, ticket] : shard.fills) out.push_back(ticket->path);
  return out;
}

bool Index::next_slice(Cursor& cursor, std::vector<std::pair<KeyHash, Entry>>& into) {
  Shard& shard = shards_[cursor.shard];
  into.clear();
  std::lock_guard lock(shard.mutex);
  const Map& all = shard.generations;
  if (cursor.buckets != all.bucket_count()) {  // it grew: everything lies elsewhere
    cursor.buckets = all.bucket_count();
    cursor.bucket = 0;
  }
  const size_t end = std::min(cursor.buckets, cursor.bucket + kSliceBuckets);
  for (; cursor.bucket < end && into.size() < kSliceEntries; ++cursor.bucket) {
    for (auto it = all.begin(cursor.bucket); it != all.end(cursor.bucket); ++it) {
      const Generation& generation = it->second;
      if (!generation.has_head) continue;
      Entry entry{generation.id, {}, generation.revision, generation.head};
      if (!entry.head) entry.record = tiers_[generation.head_record.tier()]->pin(generation.head_record);
      into.emplace_back(KeyHash{it->first, generation.query}, std::move(entry));
    }
  }
  return cursor.bucket < cursor.buckets;
}

bool Index::insert(const FillTicket& ticket, const Place& record, const StoredHeadPtr& head) {
  Shard& shard = shard_of(ticket.key.path);
  std::lock_guard lock(shard.mutex);
  if (ticket.doomed) return false;
  // Every look-up goes through all that a path has.
  if (shard.generations.count(ticket.key.path) >= limits::kGenerationsPerPathMax) return false;
  Generation generation;
  generation.query = ticket.key.query;
  generation.id = head->generation;
  generation.head_record = record;
  generation.has_head = true;
  const auto at = shard.generations.emplace(ticket.key.path, std::move(generation));
  ++generations_;
  retain(record);
  set_head(shard, at->second, head);
  if (shard.head_bytes > shard_head_bytes_max_) sweep_heads(shard);
  return true;
}

bool Index::replace_head(const KeyHash& hash, const StoredHeadPtr& head, const Place* record) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  Generation* generation = find_generation(shard, hash, head->generation);
  if (!generation) return false;
  if (record) {
    release(generation->head_record);
    retain(*record);
    generation->head_record = *record;
    ++generation->revision;
    generation->has_old_heads = true;
  }
  set_head(shard, *generation, head);
  return true;
}

void Index::insert_extent(Generation& generation, const Extent& extent) {
  auto& extents = generation.extents;
  const auto same_tier = [&](const Extent& other) { return other.place.tier() == extent.place.tier(); };
  for (Extent& other : extents) {
    if (!same_tier(other) || other.offset > extent.offset || other.end() < extent.end()) continue;
    if (other.offset == extent.offset && other.end() == extent.end()) {
      release(other.place);
      retain(extent.place);
      other.place = extent.place;
    }
    return;  // it adds nothing
  }
  const auto inside = [&](const Extent& other) {
    return same_tier(other) && other.offset >= extent.offset && other.end() <= extent.end();
  };
  for (const Extent& other : extents) {
    if (inside(other)) release(other.place), --extents_;
  }
  extents.erase(std::remove_if(extents.begin(), extents.end(), inside), extents.end());
  retain(extent.place);
  ++extents_;
  const auto at = std::upper_bound(extents.begin(), extents.end(), extent.offset,
                                   [](uint64_t offset, const Extent& e) { return offset < e.offset; });
  extents.insert(at, extent);
}

bool Index::add_extents(const FillTicket& ticket, uint64_t id, const std::vector<Extent>& extents) {
  Shard& shard = shard_of(ticket.key.path);
  std::lock_guard lock(shard.mutex);
  if (ticket.doomed) return false;
  Generation* generation = find_generation(shard, ticket.key, id);
  if (!generation) return false;
  if (generation->extents.size() + extents.size() > limits::kExtentsPerGenerationMax) return false;
  for (const Extent& extent : extents) insert_extent(*generation, extent);
  return true;
}

bool Index::add_copy(const KeyHash& hash, uint64_t id, const Extent& extent) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  Generation* generation = find_generation(shard, hash, id);
  if (generation) insert_extent(*generation, extent);
  return generation != nullptr;
}

bool Index::is_gone(const KeyHash& hash, uint64_t id) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  return !find_generation(shard, hash, id) && !shard.unforbidden.contains(hash.path);
}

void Index::remove(const KeyHash& hash, uint64_t id) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  const auto [first, last] = shard.generations.equal_range(hash.path);
  for (auto it = first; it != last; ++it) {
    if (it->second.id == id && it->second.query == hash.query) return erase(shard, it);
  }
}

std::optional<uint64_t> Index::invalidate(uint64_t path_hash) {
  Shard& shard = shard_of(path_hash);
  std::lock_guard lock(shard.mutex);
  bool any = shard.unforbidden.contains(path_hash);
  const auto [first_fill, last_fill] = shard.fills.equal_range(path_hash);
  for (auto it = first_fill; it != last_fill; ++it) it->second->doomed = any = true;
  auto [it, last] = shard.generations.equal_range(path_hash);
  while (it != last) {
    any = true;
    erase(shard, it++);
  }
  if (!any) return std::nullopt;
  shard.unforbidden.insert(path_hash);
  return next_generation();  // under the lock: a fill that begins now gets a higher one
}

void Index::forbid_later(const KeyHash& hash) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  shard.unforbidden.insert(hash.path);
}

void Index::forbidden(const KeyHash& hash) {
  Shard& shard = shard_of(hash.path);
  std::lock_guard lock(shard.mutex);
  const auto at = shard.unforbidden.find(hash.path);
  if (at != shard.unforbidden.end()) shard.unforbidden.erase(at);
}

}  // namespace nezha::cache
