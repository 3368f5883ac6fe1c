#include "cache/policy/shadow.h"

#include <algorithm>
#include <utility>

namespace nezha::cache {
namespace {

constexpr uint64_t kBatches = 128;     // per cache, as segments in a tier
constexpr uint64_t kLargestParts = 4;  // what is larger than this part of the shadow is not stored in it
constexpr size_t kGhostKeysMax = 1 << 13;
constexpr uint8_t kReadsMax = 7;

}  // namespace

Shadow::Shadow(StrategyKind kind, uint64_t capacity_bytes)
    : capacity_bytes_(std::max<uint64_t>(capacity_bytes, 1)),
      decider_(kind, capacity_bytes_, kGhostKeysMax),
      table_(16, kNone) {}

bool Shadow::request(uint64_t key) {
  const uint32_t entry = table_[slot_of(key)];
  if (entry == kNone) return false;
  entries_[entry].reads = static_cast<uint8_t>(std::min(entries_[entry].reads + 1, int{kReadsMax}));
  return true;
}

void Shadow::offer(uint64_t key, uint64_t size_bytes) {
  if (size_bytes > capacity_bytes_ / kLargestParts || table_[slot_of(key)] != kNone) return;
  const bool fits = used_bytes() + size_bytes <= capacity_bytes_;
  const auto queue = decider_.admit(key, size_bytes, fits ? capacity_bytes_ - used_bytes() : 0);
  if (!queue) return;
  while (used_bytes() + size_bytes > capacity_bytes_) reclaim_batch();
  if ((objects_ + 1) * 2 > table_.size()) grow_table();
  uint32_t entry = free_;
  if (entry != kNone) {
    free_ = entries_[entry].next;
  } else {
    entry = static_cast<uint32_t>(entries_.size());
    entries_.emplace_back();
  }
  entries_[entry] = {key, size_bytes, kNone, 0};
  table_[slot_of(key)] = entry;
  ++objects_;
  push(*queue, entry);
}

void Shadow::reclaim_batch() {
  Queue from = decider_.victim(fifo(Queue::kProbation).bytes, fifo(Queue::kMain).bytes);
  if (fifo(from).oldest == kNone) from = from == Queue::kMain ? Queue::kProbation : Queue::kMain;
  // Not beyond what was there at the start: what is kept goes to the end of main.
  const uint64_t batch_bytes = std::min(std::max<uint64_t>(capacity_bytes_ / kBatches, 1), fifo(from).bytes);
  for (uint64_t taken_bytes = 0; taken_bytes < batch_bytes && fifo(from).oldest != kNone;) {
    const uint32_t index = pop(from);
    Entry& entry = entries_[index];
    taken_bytes += std::max<uint64_t>(entry.size_bytes, 1);
    if (decider_.keep(entry.key, entry.size_bytes, from, entry.reads)) {
      entry.reads -= entry.reads > 0;
      push(Queue::kMain, index);
      continue;
    }
    decider_.on_evicted(entry.key, from);
    drop(index);
  }
}

void Shadow::drop(uint32_t entry) {
  erase_slot(slot_of(entries_[entry].key));
  entries_[entry].next = free_;
  free_ = entry;
  --objects_;
}

size_t Shadow::slot_of(uint64_t key) const {
  const size_t mask = table_.size() - 1;
  // The sample fixes some bits of a product of the key, not these.
  size_t slot = (key >> 16) & mask;
  while (table_[slot] != kNone && entries_[table_[slot]].key != key) slot = (slot + 1) & mask;
  return slot;
}

// Moves later entries of the run up, so that no look-up ends early at the hole.
void Shadow::erase_slot(size_t hole) {
  const size_t mask = table_.size() - 1;
  for (size_t slot = (hole + 1) & mask; table_[slot] != kNone; slot = (slot + 1) & mask) {
    const size_t wanted = (entries_[table_[slot]].key >> 16) & mask;
    if (((slot - wanted) & mask) < ((slot - hole) & mask)) continue;
    table_[hole] = table_[slot];
    hole = slot;
  }
  table_[hole] = kNone;
}

void Shadow::grow_table() {
  const std::vector<uint32_t> old = std::exchange(table_, std::vector<uint32_t>(table_.size() * 2, kNone));
  for (const uint32_t entry : old) {
    if (entry != kNone) table_[slot_of(entries_[entry].key)] = entry;
  }
}

void Shadow::push(Queue queue, uint32_t entry) {
  Fifo& to = fifo(queue);
  entries_[entry].next = kNone;
  (to.newest == kNone ? to.oldest : entries_[to.newest].next) = entry;
  to.newest = entry;
  to.bytes += entries_[entry].size_bytes;
}

uint32_t Shadow::pop(Queue queue) {
  Fifo& from = fifo(queue);
  const uint32_t entry = from.oldest;
  from.oldest = entries_[entry].next;
  if (from.oldest == kNone) from.newest = kNone;
  from.bytes -= entries_[entry].size_bytes;
  return entry;
}

size_t Shadow::memory_bytes() const {
  return sizeof *this + entries_.capacity() * sizeof(Entry) + table_.capacity() * sizeof(uint32_t) +
         decider_.memory_bytes();
}

}  // namespace nezha::cache
