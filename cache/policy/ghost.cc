#include "cache/policy/ghost.h"

#include <algorithm>
#include <utility>

namespace nezha::cache {

uint32_t GhostTable::fingerprint_of(uint64_t key) {
  const auto high = static_cast<uint32_t>(key >> 32);
  return high == 0 ? 1 : high;
}

void GhostTable::set_length(size_t keys) {
  length_ = std::clamp(keys, kWays, std::max(keys_max_, kWays));
  // A third more slots than keys: buckets fill unevenly.
  const size_t slots_wanted = length_ + length_ / 3;
  if (buckets_.size() * kWays >= slots_wanted) return;
  const size_t size = (slots_wanted + slots_wanted / 4) / kWays + 1;  // not again soon
  const std::vector<Bucket> old = std::exchange(buckets_, std::vector<Bucket>(size));
  for (const Bucket& bucket : old) {
    for (const Slot& slot : bucket.slots) {
      if (is_live(slot)) place(slot);
    }
  }
}

void GhostTable::place(Slot slot) {
  Bucket& bucket = bucket_of(slot.fingerprint);
  Slot* oldest = &bucket.slots[0];
  for (Slot& other : bucket.slots) {
    if (other.fingerprint == slot.fingerprint || !is_live(other)) {
      oldest = &other;
      break;
    }
    if (clock_ - other.inserted > clock_ - oldest->inserted) oldest = &other;
  }
  *oldest = slot;
}

void GhostTable::insert(uint64_t key) {
  ++clock_;
  place({fingerprint_of(key), clock_});
}

bool GhostTable::take(uint64_t key) {
  const uint32_t fingerprint = fingerprint_of(key);
  for (Slot& slot : bucket_of(fingerprint).slots) {
    if (slot.fingerprint != fingerprint) continue;
    const bool live = is_live(slot);
    slot = {};
    return live;
  }
  return false;
}

}  // namespace nezha::cache
