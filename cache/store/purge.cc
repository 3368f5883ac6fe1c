// Dropping by name: of writes that pass through, and of what is said from outside.
#include <algorithm>
#include <set>

#include "cache/index/head_record.h"
#include "cache/store/store.h"

namespace nezha::cache {
namespace {

constexpr size_t kTombstonesAtOnce = 4096;

std::vector<uint64_t> hashes_of(const std::vector<std::string>& paths) {
  std::vector<uint64_t> out;
  out.reserve(paths.size());
  for (const auto& path : paths) out.push_back(hash_of_path(path));
  return out;
}

}  // namespace

// In memory. What must be forbidden on the media before anybody is told.
std::vector<Record> Store::forget_paths(std::span<const uint64_t> path_hashes) {
  std::vector<Record> tombstones;
  for (const uint64_t path : path_hashes) {
    if (const auto up_to = index_.invalidate(path))
      tombstones.push_back({RecordKind::kPathTombstone, KeyHash{path, 0}, *up_to, 0});
  }
  return tombstones;
}

// Writes tombstones of paths to every tier that may hold what they forbid.
void Store::forbid_paths(const std::vector<Record>& tombstones) {
  for (auto& tier : tiers_) {
    if (!takes_tombstones(*tier)) continue;
    // Twice, as ever: one of them may be damaged. Together, since each sync is a wait for the medium.
    const bool together =
        tombstones.size() > 1 && tier->carry_tombstones(tombstones) && tier->carry_tombstones(tombstones);
    for (const Record& tombstone : tombstones) {
      if (together) break;
      forbid_in(*tier, tombstone, true);
    }
  }
  for (const Record& tombstone : tombstones) index_.forbidden(tombstone.key);
}

net::Task<> Store::invalidate(std::vector<std::string> paths) {
  const std::vector<Record> tombstones = forget_paths(hashes_of(paths));
  if (tombstones.empty()) co_return;
  std::function<void()> work = [&] { forbid_paths(tombstones); };
  co_await deps_.workers.run(std::move(work));
}

net::Task<> Store::invalidate_hashed(std::span<const uint64_t> path_hashes) {
  std::function<void()> work = [&] { purge_hashed(path_hashes); };
  co_await deps_.workers.run(std::move(work));
}

size_t Store::purge(const std::vector<std::string>& paths) { return purge_hashed(hashes_of(paths)); }

size_t Store::purge_hashed(std::span<const uint64_t> path_hashes) {
  const std::vector<Record> tombstones = forget_paths(path_hashes);
  for (size_t begin = 0; begin < tombstones.size(); begin += kTombstonesAtOnce) {
    const size_t end = std::min(tombstones.size(), begin + kTombstonesAtOnce);
    forbid_paths(
        {tombstones.begin() + static_cast<ptrdiff_t>(begin), tombstones.begin() + static_cast<ptrdiff_t>(end)});
  }
  return tombstones.size();
}

// The paths of one shard that match. What it pins of a slice is let go before anything is written, and before the next.
std::vector<uint64_t> Store::paths_in(size_t shard, const PathPredicate& matches) {
  std::set<uint64_t> out;
  // Fills first: one that publishes from here on was seen here, or began behind the purge.
  for (const auto& path : index_.filling(shard)) {
    if (matches(path)) out.insert(hash_of_path(path));
  }
  Index::Cursor cursor{shard};
  std::vector<std::pair<KeyHash, Index::Entry>> slice;
  std::vector<std::pair<KeyHash, uint64_t>> damaged;
  for (bool more = true; more;) {
    more = index_.next_slice(cursor, slice);
    for (auto& [hash, entry] : slice) {
      StoredHeadPtr head = entry.head;
      if (!head) {
        const PinnedBytes& record = entry.record;
        const Result<void> ready = tiers_[record.place->tier()]->make_ready(*record.place);
        auto decoded = ready ? decode_head(record.bytes, entry.generation) : Result<StoredHeadPtr>(ready.error());
        if (decoded) head = std::move(decoded.value());
      }
      if (!head)
        damaged.emplace_back(hash, entry.generation);
      else if (matches(head->key.path))
        out.insert(hash.path);
    }
    slice.clear();
    for (const auto& [hash, generation] : damaged) drop_damaged(hash, generation);
    damaged.clear();
  }
  return {out.begin(), out.end()};
}

size_t Store::purge_if(const PathPredicate& matches) {
  size_t count = 0;
  ++scans_;
  for (size_t shard = 0; shard < Index::kShards; ++shard) count += purge_hashed(paths_in(shard, matches));
  return count;
}

net::Task<> Store::invalidate_if(PathPredicate matches) {
  const auto scan = std::make_shared<Scan>();
  scan->matches = std::move(matches);
  bool first = false;
  {
    std::lock_guard lock(scans_mutex_);
    scans_wanted_.push_back(scan);
    first = !std::exchange(scanning_, true);
  }
  std::function<void()> work = [this] { scan_while_wanted(); };
  if (first) deps_.workers.start(std::move(work));
  for (;;) {
    const uint64_t version = scan->ended.version();
    if (scan->done) break;
    co_await scan->ended.wait(version);
  }
}

// By one worker at a time.
void Store::scan_while_wanted() {
  for (;;) {
    std::vector<std::shared_ptr<Scan>> all;
    {
      std::lock_guard lock(scans_mutex_);
      all.swap(scans_wanted_);
      scanning_ = !all.empty();
    }
    if (all.empty()) return;
    purge_if([&](const std::string& path) {
      return std::any_of(all.begin(), all.end(), [&](const auto& scan) { return scan->matches(path); });
    });
    for (const auto& scan : all) {
      scan->done = true;
      scan->ended.notify_all();
    }
  }
}

}  // namespace nezha::cache
