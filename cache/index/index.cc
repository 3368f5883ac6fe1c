#include "cache/index/index.h"

#include <xxhash.h>

#include <algorithm>

namespace nezha::cache {
namespace {

bool same_generation(const StoredHead& a, const StoredHead& b) {
  return a.strong() && b.strong() && http::strong_match(*a.etag, *b.etag) && a.total_bytes == b.total_bytes &&
         a.credentials == b.credentials;
}

uint64_t head_cost(const StoredHead& head) {
  return sizeof(StoredHead) + head.fields.memory_bytes() + head.lines.capacity() + head.partial_lines.capacity();
}

}  // namespace

uint64_t Index::owner_hash(const std::string& path) { return XXH3_64bits(path.data(), path.size()); }

Index::Object* Index::find_object(Shard& shard, uint64_t hash, const std::string& path) {
  const auto [first, last] = shard.objects.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (it->second.path == path) return &it->second;
  }
  return nullptr;
}

Index::Generation* Index::find_generation(Shard& shard, uint64_t hash, const CacheKey& key, const StoredHead* head) {
  Object* object = find_object(shard, hash, key.path);
  if (!object) return nullptr;
  for (auto& generation : object->generations) {
    if (generation.head.get() == head && generation.query == key.query) return &generation;
  }
  return nullptr;
}

void Index::account(const Generation& generation, int sign) {
  const uint64_t cost =
      head_cost(*generation.head) + generation.query.capacity() + generation.extents.capacity() * sizeof(Extent);
  if (sign > 0)
    head_bytes_ += cost;
  else
    head_bytes_ -= std::min<uint64_t>(cost, head_bytes_);
}

void Index::erase_if_empty(Shard& shard, uint64_t hash, const std::string& path) {
  const auto [first, last] = shard.objects.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (it->second.path != path || !it->second.generations.empty()) continue;
    shard.objects.erase(it);
    --objects_;
    return;
  }
}

StoredHeadPtr Index::find(const CacheKey& key, const http::Fields& request) {
  const uint64_t hash = owner_hash(key.path);
  Shard& shard = shard_of(hash);
  std::lock_guard lock(shard.mutex);
  Object* object = find_object(shard, hash, key.path);
  if (!object) return nullptr;
  // The newest first: RFC 9111 §4 asks for the most recent of several that fit.
  for (auto it = object->generations.rbegin(); it != object->generations.rend(); ++it) {
    if (it->query == key.query && selects(*it->head, request)) return it->head;
  }
  return nullptr;
}

std::optional<PinnedBody> Index::pin(const CacheKey& key, const StoredHeadPtr& head, http::ByteRange range) {
  const uint64_t hash = owner_hash(key.path);
  Shard& shard = shard_of(hash);
  std::lock_guard lock(shard.mutex);
  const Generation* generation = find_generation(shard, hash, key, head.get());
  if (!generation) return std::nullopt;
  PinnedBody body{range, {}};
  uint64_t at = range.begin;
  const auto& extents = generation->extents;
  while (at < range.end) {
    // Of the extents that begin at or before `at`, the one that reaches farthest.
    auto after = std::upper_bound(extents.begin(), extents.end(), at,
                                  [](uint64_t offset, const Extent& e) { return offset < e.offset; });
    const Extent* best = nullptr;
    while (after != extents.begin()) {
      --after;
      if (after->end() > at && (!best || after->end() > best->end())) best = &*after;
      if (best && after->offset + (1u << 20) <= at) break;  // no record is longer than a piece
    }
    if (!best) return std::nullopt;
    auto pinned = tier_.pin(best->place);
    if (!pinned) return std::nullopt;
    pinned->bytes = pinned->bytes.substr(at - best->offset, std::min(best->end(), range.end) - at);
    at += pinned->bytes.size();
    body.pieces.push_back(std::move(*pinned));
  }
  return body;
}

std::shared_ptr<FillTicket> Index::begin_fill(const CacheKey& key) {
  const uint64_t hash = owner_hash(key.path);
  Shard& shard = shard_of(hash);
  auto* raw = new FillTicket;
  raw->path = key.path;
  std::shared_ptr<FillTicket> ticket(raw, [&shard, hash](FillTicket* ended) {
    {
      std::lock_guard lock(shard.mutex);
      const auto [first, last] = shard.fills.equal_range(hash);
      for (auto it = first; it != last; ++it) {
        if (it->second != ended) continue;
        shard.fills.erase(it);
        break;
      }
    }
    delete ended;
  });
  std::lock_guard lock(shard.mutex);
  shard.fills.emplace(hash, raw);
  return ticket;
}

bool Index::publish(const FillTicket& ticket, const CacheKey& key, const StoredHeadPtr& head,
                    std::vector<Extent> extents) {
  const uint64_t hash = owner_hash(key.path);
  Shard& shard = shard_of(hash);
  std::lock_guard lock(shard.mutex);
  if (ticket.doomed) return false;
  Object* object = find_object(shard, hash, key.path);
  if (!object) {
    object = &shard.objects.emplace(hash, Object{key.path, {}})->second;
    ++objects_;
  }
  Generation next{key.query, head, std::move(extents)};
  for (auto it = object->generations.begin(); it != object->generations.end();) {
    // The same secondary key: this response takes the place of that one.
    if (it->query != key.query || it->head->selecting != head->selecting) {
      ++it;
      continue;
    }
    const bool same = same_generation(*it->head, *head);
    // An older answer that took longer to arrive must not replace a newer one.
    if (!same && it->head->response_time > head->response_time) return false;
    account(*it, -1);
    if (same) {
      // RFC 9111 §3.4: the newer answer's fields, without losing what only the whole answer carried.
      next.head = refreshed(*it->head, head->fields, head->credentials, head->response_time, head->response_time,
                            std::max(it->head->lifetime.initial_age, head->lifetime.initial_age));
      std::erase_if(it->extents, [&](const Extent& extent) { return !still_there(extent); });
      next.extents.insert(next.extents.end(), it->extents.begin(), it->extents.end());
    }
    it = object->generations.erase(it);
  }
  std::sort(next.extents.begin(), next.extents.end(), [](const Extent& a, const Extent& b) {
    return a.offset < b.offset || (a.offset == b.offset && a.end() > b.end());
  });
  // An extent inside the one before it adds nothing.
  std::vector<Extent> kept;
  for (const Extent& extent : next.extents) {
    if (kept.empty() || extent.end() > kept.back().end()) kept.push_back(extent);
  }
  next.extents = std::move(kept);
  account(next, +1);
  object->generations.push_back(std::move(next));
  return true;
}

StoredHeadPtr Index::refresh(const CacheKey& key, const StoredHeadPtr& old_head, const StoredHeadPtr& new_head) {
  const uint64_t hash = owner_hash(key.path);
  Shard& shard = shard_of(hash);
  std::lock_guard lock(shard.mutex);
  Generation* generation = find_generation(shard, hash, key, old_head.get());
  if (!generation) return nullptr;
  account(*generation, -1);
  generation->head = new_head;
  account(*generation, +1);
  return new_head;
}

void Index::invalidate(const std::string& path) {
  const uint64_t hash = owner_hash(path);
  Shard& shard = shard_of(hash);
  std::lock_guard lock(shard.mutex);
  const auto [first, last] = shard.fills.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    if (it->second->path == path) it->second->doomed = true;
  }
  Object* object = find_object(shard, hash, path);
  if (!object) return;
  for (const auto& generation : object->generations) account(generation, -1);
  object->generations.clear();
  erase_if_empty(shard, hash, path);
}

void Index::drop(const CacheKey& key, const StoredHeadPtr& head) {
  const uint64_t hash = owner_hash(key.path);
  Shard& shard = shard_of(hash);
  std::lock_guard lock(shard.mutex);
  Object* object = find_object(shard, hash, key.path);
  if (!object) return;
  std::erase_if(object->generations, [&](const Generation& generation) {
    if (generation.head != head || generation.query != key.query) return false;
    account(generation, -1);
    return true;
  });
  erase_if_empty(shard, hash, key.path);
}

void Index::sweep(const std::vector<uint64_t>& owners) {
  uint64_t previous = 0;
  for (const uint64_t hash : owners) {
    if (hash == previous) continue;  // the pieces of one object lie side by side
    previous = hash;
    Shard& shard = shard_of(hash);
    std::lock_guard lock(shard.mutex);
    const auto [first, last] = shard.objects.equal_range(hash);
    std::vector<std::string> emptied;
    for (auto it = first; it != last; ++it) {
      std::erase_if(it->second.generations, [&](Generation& generation) {
        account(generation, -1);
        std::erase_if(generation.extents, [&](const Extent& extent) { return !still_there(extent); });
        if (generation.extents.empty()) return true;
        account(generation, +1);
        return false;
      });
      if (it->second.generations.empty()) emptied.push_back(it->second.path);
    }
    for (const auto& path : emptied) erase_if_empty(shard, hash, path);
  }
}

}  // namespace nezha::cache
