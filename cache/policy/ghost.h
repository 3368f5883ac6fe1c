// GhostTable: remembers the last keys that were evicted, 8 bytes each, without their order being kept in a list.
// Approximate: a key may be forgotten early (its bucket was full) and, for one look-up in thousands, taken for another.
// Threads: none of its own; the owner locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nezha::cache {

class GhostTable {
 public:
  explicit GhostTable(size_t keys_max) : keys_max_(keys_max), buckets_(1) {}

  // How many insertions a key is remembered for, at most `keys_max`. The table grows, it never shrinks.
  void set_length(size_t keys);
  void insert(uint64_t key);
  // Whether the key was evicted lately; forgets it.
  bool take(uint64_t key);
  size_t memory_bytes() const { return buckets_.size() * sizeof(Bucket); }

 private:
  struct Slot {
    uint32_t fingerprint = 0;  // 0: empty
    uint32_t inserted = 0;     // value of clock_ then
  };
  static constexpr size_t kWays = 8;  // a bucket is a cache line
  struct alignas(64) Bucket {
    Slot slots[kWays];
  };

  static uint32_t fingerprint_of(uint64_t key);
  Bucket& bucket_of(uint32_t fingerprint) { return buckets_[(fingerprint * uint64_t{buckets_.size()}) >> 32]; }
  bool is_live(const Slot& slot) const { return slot.fingerprint != 0 && clock_ - slot.inserted < length_; }
  void place(Slot slot);

  size_t keys_max_;
  size_t length_ = kWays;
  uint32_t clock_ = 0;  // counts insertions; wraps
  std::vector<Bucket> buckets_;
};

}  // namespace nezha::cache
