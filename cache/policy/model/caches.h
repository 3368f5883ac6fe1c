// Caches to replay a trace against: a model of the segmented tier that asks a Policy, and exact references.
// No bytes are kept, only who is resident. Not part of the product; linked by tests and benchmarks only.
// Threads: none; one owner.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "cache/policy/model/trace.h"
#include "cache/policy/policy.h"

namespace nezha::cache::model {

class Cache {
 public:
  virtual ~Cache() = default;
  // True: a hit.
  virtual bool request(uint32_t object) = 0;
};

// The tier: `segments` equal segments, one of them the reserve that reclaiming needs, one open segment per queue.
// An object is stored as records of at most a sixteenth of a segment; when one of them is dropped, all are dead. A
// sealed segment without live records is free at once.
class SegmentedTier final : public Cache {
 public:
  SegmentedTier(const Trace& trace, Policy& policy, unsigned segments);
  bool request(uint32_t object) override;

  uint64_t stored_bytes() const { return stored_bytes_; }
  uint64_t rewritten_bytes() const { return rewritten_bytes_; }
  uint64_t resident_bytes() const { return resident_bytes_; }
  // Bytes written per byte stored.
  double write_amplification() const;

 private:
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Record {
    uint32_t object = 0;
    uint32_t storing = 0;   // which storing of the object it belongs to
    bool is_first = false;  // of its object
    uint64_t size_bytes = 0;
  };
  struct Place {
    uint32_t segment = 0;
    uint64_t size_bytes = 0;
  };
  struct Object {
    uint32_t storing = 0;  // counts
    bool resident = false;
    uint8_t reads = 0;
    std::vector<Place> places;  // of its records
  };
  struct Segment {
    std::vector<Record> records;
    uint64_t used_bytes = 0;
    uint64_t live_bytes = 0;
  };
  struct Stream {
    uint32_t open = kNone;
    std::deque<uint32_t> sealed;  // oldest first
  };

  Stream& stream(Queue queue) { return streams_[static_cast<size_t>(queue)]; }
  uint64_t bytes_of(Queue queue) const;
  bool fits(const Stream& to, uint64_t size_bytes) const;
  void open_segment(Stream& to);
  void append(Stream& to, const Record& record);
  void store(Queue queue, uint32_t object);
  void reclaim();
  bool decide(const Record& record, Queue from);
  void kill(uint32_t object);
  void free_dead(Stream& of);
  uint64_t free_bytes() const { return free_.size() > 1 ? (free_.size() - 1) * segment_bytes_ : 0; }

  const Trace& trace_;
  Policy& policy_;
  uint64_t segment_bytes_;
  std::vector<Segment> segments_;
  std::vector<uint32_t> free_;
  Stream streams_[2];
  std::vector<Object> objects_;
  uint64_t stored_bytes_ = 0;
  uint64_t rewritten_bytes_ = 0;
  uint64_t resident_bytes_ = 0;
};

// Least recently used, object by object.
std::unique_ptr<Cache> make_exact_lru(const Trace& trace);
// S3-FIFO object by object: a small queue of a tenth, a main queue with up to three second chances, a ghost queue of as
// many keys as main holds (Yang et al., SOSP 2023).
std::unique_ptr<Cache> make_exact_s3_fifo(const Trace& trace);

// Replays the trace; the ratio of hits after the warm-up. `seen` is called for each request, with its position.
double hit_ratio(const Trace& trace, Cache& cache, const std::function<void(size_t, bool)>& seen = nullptr);

}  // namespace nezha::cache::model
