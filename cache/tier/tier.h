// Tier: where body bytes are kept. Reserve, then write, then publish (in the index); bytes are read through a pin.
// A tier never hands out bytes that were not written in full, and never holds more than its size.
// Threads: any. write() may block on the medium: call it on a worker. pin() never blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/config/settings.h"

namespace nezha::cache {

// Where a record lies. Valid until its segment is reclaimed; pin() tells.
struct Place {
  uint32_t segment = 0;
  uint32_t epoch = 0;  // of the segment, raised when it is reclaimed
  uint32_t offset_bytes = 0;
  uint32_t size_bytes = 0;
};

// Bytes in the tier that stay in place while this value lives.
struct PinnedBytes {
  std::string_view bytes;
  std::shared_ptr<const void> pin;
};

class Tier {
 public:
  // Space promised to one fill; given back when destroyed.
  class Reservation {
   public:
    virtual ~Reservation() = default;
  };

  virtual ~Tier() = default;
  // Fails with kGiveUp when the tier could not hold the fill beside those already promised: relay without storing.
  virtual Result<std::unique_ptr<Reservation>> reserve(uint64_t size_bytes) = 0;
  // Copies the bytes in and notes who owns them, reclaiming the oldest segment when there is no room.
  // `owner` is the hash of the index path, handed back through the reclaim callback.
  // Fails with kGiveUp: no room (all segments pinned, disk full) or an I/O error.
  // REQUIRES: bytes.size() <= limits::kPieceBytes.
  virtual Result<Place> write(uint64_t owner, std::string_view bytes) = 0;
  // Nothing when the record's segment was reclaimed.
  virtual std::optional<PinnedBytes> pin(const Place& place) = 0;
  // Reclaims the oldest segment that nobody reads. False when there is none.
  virtual bool reclaim_oldest() = 0;

  virtual uint64_t size_bytes() const = 0;  // the hard limit
  virtual uint64_t used_bytes() const = 0;
};

// Called after a segment was reclaimed, with the owners of its records (with repetitions). No tier lock is held.
using Reclaimed = std::function<void(const std::vector<uint64_t>& owners)>;

// kNvme, kPmem: files in settings.path, which is created when missing and locked against a second process.
// kMemory: anonymous memory. Segment files of an earlier process are removed: nothing of them is trusted.
// Fails with kFixInput: the directory cannot be made, written or locked, or the size is under 16 MiB.
Result<std::unique_ptr<Tier>> make_segment_tier(const config::TierSettings& settings, Reclaimed reclaimed);

}  // namespace nezha::cache
