// Medium: where a tier's segments live: files of a directory (NVMe, disk), persistent memory, or plain memory.
// The seam where tests put faults. A segment is written through write() and read through one mapping that lives as long
// as the value, so that a failing medium is an error on the way in, and on the way out once load() was called.
// Threads: any; two calls never write the same bytes at once.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/config/settings.h"

namespace nezha::cache {

class SegmentBytes {
 public:
  virtual ~SegmentBytes() = default;
  // When it returns, data() shows the bytes, and they outlive the process. May block on the medium.
  // Fails with kGiveUp: no room, an I/O error.
  virtual Result<void> write(uint64_t offset_bytes, std::string_view bytes) = 0;
  // When it returns, what was written there outlives the machine's power too.
  virtual Result<void> sync(uint64_t offset_bytes, uint64_t size_bytes) = 0;
  // Brings the bytes into memory. May block. Fails with kGiveUp: the medium cannot read them.
  virtual Result<void> load(uint64_t offset_bytes, uint64_t size_bytes) const = 0;
  // Starts to bring them in without waiting.
  virtual void prefetch(uint64_t offset_bytes, uint64_t size_bytes) const = 0;
  // Whether reading data() there would wait for the medium. A hint: it may change at any time.
  virtual bool is_resident(uint64_t offset_bytes, uint64_t size_bytes) const = 0;
  virtual std::string_view data() const = 0;
  // A file whose bytes are those of data(), or -1: it can be sent without a copy.
  virtual int file() const { return -1; }
  // Before the bytes are written anew: what was sent without a copy, and is still on its way, must not change.
  // Fails with kGiveUp: the segment cannot be used.
  virtual Result<void> renew() { return ok(); }
};

class Medium {
 public:
  virtual ~Medium() = default;
  // Whether segments outlive the process.
  virtual bool durable() const = 0;
  // "NVMe /var/cache/nezha": for messages.
  virtual std::string name() const = 0;

  // Numbers of the segments that an earlier process left, in no order.
  virtual Result<std::vector<uint32_t>> list() = 0;
  virtual Result<std::unique_ptr<SegmentBytes>> open(uint32_t number) = 0;
  // A new segment of zeros, with its space promised by the medium. Fails with kGiveUp: no room.
  virtual Result<std::unique_ptr<SegmentBytes>> create(uint32_t number, uint64_t size_bytes) = 0;
  // For good: also after a loss of power. False when it may still be there.
  virtual bool remove(uint32_t number) = 0;
  // Puts a segment that is not ours to read out of the way, without losing it. The place it has now, for the log.
  virtual std::string set_aside(uint32_t number) = 0;

  // The marker of run_marker.h: a few bytes beside the segments. Fails with kAbsent: there is none; with kGiveUp: it
  // cannot be read.
  virtual Result<std::string> read_marker() = 0;
  // Whole or not at all, whoever dies; outlives the machine's power when it returns. Fails with kGiveUp.
  virtual Result<void> write_marker(std::string_view bytes) = 0;
  virtual std::string set_aside_marker() = 0;  // as set_aside()
};

// kNvme, kPmem: a directory, which is created when missing and locked against a second process; kPmem maps with libpmem
// and finds out by itself whether the directory really is on persistent memory. kMemory: nothing outlives the process.
// Fails with kFixInput: the directory cannot be made, written or locked.
Result<std::unique_ptr<Medium>> make_medium(const config::TierSettings& settings);

}  // namespace nezha::cache
