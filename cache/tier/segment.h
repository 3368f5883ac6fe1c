// Segment: one segment of a tier, with what is known of it in memory. Private to the tier.
// Threads: fields under the tier's mutex are marked; the atomics are free for all.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "cache/tier/format.h"
#include "cache/tier/medium.h"

namespace nezha::cache {

inline constexpr uint64_t kSegmentsMin = 8;  // of a tier

struct Segment {
  static constexpr uint64_t kBlockBytes = 256 * 1024;  // of which residency is remembered

  explicit Segment(uint32_t number_in, std::unique_ptr<SegmentBytes> bytes_in)
      : number(number_in),
        bytes(std::move(bytes_in)),
        resident_until_s((bytes->data().size() + kBlockBytes - 1) / kBlockBytes) {}

  const uint32_t number;
  const std::unique_ptr<SegmentBytes> bytes;
  format::SegmentHeader header;

  // Under the tier's mutex.
  uint64_t data_end = format::kDataBegin;
  uint32_t slots = 0;
  uint32_t writers = 0;

  std::mutex count_mutex;
  uint32_t counted_slots = 0;  // on the medium
  // Slots that hold a whole record. Whoever reads fewer from the medium cannot know what the index still points to.
  std::atomic<uint32_t> records{0};

  // Slots of an earlier process: trusted once their bytes were compared with their checksum.
  uint32_t recovered_slots = 0;
  std::vector<std::atomic<uint8_t>> verified;
  mutable std::vector<std::atomic<uint32_t>> resident_until_s;

  // Records that the index knows. A sealed segment without any is dead: it can be reclaimed at no loss.
  std::atomic<int64_t> live_records{0};
  std::atomic<bool> sealed{false};
  std::atomic<bool> counted_dead{false};

  uint64_t size_bytes() const { return bytes->data().size(); }
  uint64_t used_bytes() const { return data_end + slots * format::kDescriptorBytes; }
  bool is_verified(uint32_t slot) const {
    return slot >= recovered_slots || (verified[slot / 8].load(std::memory_order_relaxed) >> (slot % 8) & 1);
  }
  void set_verified(uint32_t slot) {
    if (slot < recovered_slots) verified[slot / 8].fetch_or(static_cast<uint8_t>(1u << (slot % 8)));
  }
  std::string_view descriptor(uint32_t slot) const {
    return bytes->data().substr(format::slot_offset(size_bytes(), slot), format::kDescriptorBytes);
  }
  Result<void> load_descriptors(uint32_t count) const {
    if (count == 0) return ok();
    return bytes->load(format::slot_offset(size_bytes(), count - 1), count * format::kDescriptorBytes);
  }
  void reset() {
    data_end = format::kDataBegin;
    slots = counted_slots = recovered_slots = 0;
    sealed = false;
    records = 0;
    verified = std::vector<std::atomic<uint8_t>>();
  }
};

}  // namespace nezha::cache
