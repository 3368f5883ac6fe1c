// Dropping by name: of writes that pass through, and of what is said from outside.
#include <set>

#include "cache/index/head_record.h"
#include "cache/store/store.h"

namespace nezha::cache {
namespace {

constexpr size_t kTombstonesAtOnce = 4096;

}  // namespace

// In memory. What must be forbidden on the media before anybody is told.
std::vector<Record> Store::forget_paths(const std::vector<std::string>& paths) {
  std::vector<Record> tombstones;
  for (const auto& path : paths) {
    const KeyHash hash = hash_of({path, ""});
    if (const auto up_to = index_.invalidate(hash.path))
      tombstones.push_back({RecordKind::kPathTombstone, hash, *up_to, 0});
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
  const std::vector<Record> tombstones = forget_paths(paths);
  if (tombstones.empty()) co_return;
  std::function<void()> work = [&] { forbid_paths(tombstones); };
  co_await deps_.workers.run(std::move(work));
}

size_t Store::purge(const std::vector<std::string>& paths) {
  const std::vector<Record> tombstones = forget_paths(paths);
  for (size_t begin = 0; begin < tombstones.size(); begin += kTombstonesAtOnce) {
    const size_t end = std::min(tombstones.size(), begin + kTombstonesAtOnce);
    forbid_paths(
        {tombstones.begin() + static_cast<ptrdiff_t>(begin), tombstones.begin() + static_cast<ptrdiff_t>(end)});
  }
  return tombstones.size();
}

// The paths of one shard that match. What it pinned is let go before anything is written.
std::vector<std::string> Store::paths_in(size_t shard, const PathPredicate& matches) {
  std::set<std::string> out;
  Index::Contents contents = index_.contents(shard);
  for (auto& path : contents.filling) {
    if (matches(path)) out.insert(std::move(path));
  }
  for (auto& [hash, entry] : contents.stored) {
    StoredHeadPtr head = entry.head;
    if (!head) {
      const PinnedBytes& record = entry.record;
      const Result<void> ready = tiers_[record.place->tier()]->make_ready(*record.place);
      auto decoded = ready ? decode_head(record.bytes, entry.generation) : Result<StoredHeadPtr>(ready.error());
      if (decoded) head = std::move(decoded.value());
    }
    if (!head)
      drop_damaged(hash, entry.generation);
    else if (matches(head->key.path))
      out.insert(head->key.path);
  }
  return {out.begin(), out.end()};
}

size_t Store::purge_if(const PathPredicate& matches) {
  size_t count = 0;
  for (size_t shard = 0; shard < Index::kShards; ++shard) count += purge(paths_in(shard, matches));
  return count;
}

net::Task<size_t> Store::invalidate_if(PathPredicate matches) {
  size_t count = 0;
  std::function<void()> work = [&] { count = purge_if(matches); };
  co_await deps_.workers.run(std::move(work));
  co_return count;
}

}  // namespace nezha::cache
