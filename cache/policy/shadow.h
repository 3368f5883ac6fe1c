// Shadow: a cache in miniature without bytes, to try one strategy on a sample of the keys.
// Its capacity is in bytes of the sampled keys. It reclaims in batches, as the tier does by segments.
// Threads: none of its own; the owner locks. Nothing fails. Memory grows with the resident keys, about 50 bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/policy/strategy.h"

namespace nezha::cache {

class Shadow {
 public:
  Shadow(StrategyKind kind, uint64_t capacity_bytes);

  // A request: true when it hits.
  bool request(uint64_t key);
  // Offers an object for storing; nothing happens when it is resident.
  void offer(uint64_t key, uint64_t size_bytes);

  // Drops what `stays` refuses, and goes on with another capacity.
  template <class Stays>
  void resize(uint64_t capacity_bytes, Stays stays);

  Decider& decider() { return decider_; }
  const Decider& decider() const { return decider_; }
  size_t objects() const { return objects_; }
  bool is_full() const { return decider_.is_full(); }
  size_t memory_bytes() const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Entry {
    uint64_t key = 0;
    uint64_t size_bytes = 0;
    uint32_t next = kNone;  // in its queue, towards the newest; or in the list of free entries
    uint8_t reads = 0;
  };
  struct Fifo {
    uint32_t oldest = kNone, newest = kNone;
    uint64_t bytes = 0;
  };

  Fifo& fifo(Queue queue) { return fifos_[static_cast<size_t>(queue)]; }
  size_t slot_of(uint64_t key) const;
  void erase_slot(size_t slot);
  void grow_table();
  void push(Queue queue, uint32_t entry);
  uint32_t pop(Queue queue);
  void drop(uint32_t entry);
  void reclaim_batch();
  uint64_t used_bytes() const { return fifos_[0].bytes + fifos_[1].bytes; }

  uint64_t capacity_bytes_;
  Decider decider_;
  std::vector<Entry> entries_;
  uint32_t free_ = kNone;
  std::vector<uint32_t> table_;  // open addressing; a power of two
  size_t objects_ = 0;
  Fifo fifos_[2];
};

template <class Stays>
void Shadow::resize(uint64_t capacity_bytes, Stays stays) {
  capacity_bytes_ = capacity_bytes;
  decider_.set_capacity(capacity_bytes);
  for (const Queue queue : {Queue::kProbation, Queue::kMain}) {
    for (uint32_t left = static_cast<uint32_t>(objects_), last = fifo(queue).newest; left > 0; --left) {
      if (fifo(queue).oldest == kNone) break;
      const uint32_t entry = pop(queue);
      if (stays(entries_[entry].key)) {
        push(queue, entry);
      } else {
        drop(entry);
      }
      if (entry == last) break;
    }
  }
}

}  // namespace nezha::cache
