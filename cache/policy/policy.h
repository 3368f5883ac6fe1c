// Policy: decides what a tier stores and what it gives up; it holds no data and does no I/O.
// The tier is a log of equal segments in two queues, `probation` (newcomers) and `main`. When space is needed it takes
// back the oldest sealed segment of one queue, and asks for each live record in it: re-append it to `main`, or drop it?
// The policy has no setting: it runs several candidates in miniature beside the tier and lets the one that hits most
// decide. It knows no clock, only the number of requests; with the same seed and calls it decides the same.
// Keys are 64-bit hashes that are already well mixed. A key stands for what is admitted and evicted as one: an object.
// Threads: any; every call holds a lock of its own for a short time and calls nothing back. No call fails. In the
// steady state no call allocates; tables grow with the number of objects that are stored.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace nezha::cache {

enum class Queue : uint8_t { kProbation, kMain };

// What the policy learned, for metrics. Ratios are hits by requests, over some thousand requests of the sample.
struct PolicyReport {
  struct Candidate {
    std::string_view name;  // static storage
    double hit_ratio = 0;   // of its shadow, at the tier's size
  };
  std::string_view live;  // the name of the candidate that decides now
  std::array<Candidate, 4> candidates;
  double hit_ratio_at_double_size = 0;  // what the live candidate's kind would hit in a tier of twice the size
  uint64_t switches = 0;                // how often another candidate took over
  uint64_t memory_bytes = 0;            // held by the policy in all
};

class Policy {
 public:
  virtual ~Policy() = default;

  // Each look-up. `size_bytes`: what the object takes in the tier when it is stored; 0 on a miss, whose size comes with
  // the admit() that follows.
  virtual void on_request(uint64_t key, uint64_t size_bytes) = 0;

  // Once per object before it is stored; nothing: relay it without storing. `free_bytes` is what could be stored
  // before a segment must be taken back: empty segments, without the reserve that reclaiming itself needs.
  virtual std::optional<Queue> admit(uint64_t key, uint64_t size_bytes, uint64_t free_bytes) = 0;

  // A segment is needed: the queue that gives its oldest sealed one. Sizes include open segments. When that queue has
  // no sealed segment, take the other's.
  virtual Queue victim(uint64_t probation_bytes, uint64_t main_bytes) = 0;

  // An object with live records in a segment being reclaimed, once per segment. `reads`: its saturating count, three
  // bits, 0 when it was stored. True: re-append these records to main, and lower the count by one if the first record
  // of the object is among them. False: drop the object with all its records, and call on_evicted().
  // Whatever is read, at least a sixteenth of what is asked about is dropped, less one segment: reclaiming ends.
  virtual bool keep(uint64_t key, uint64_t size_bytes, Queue from, unsigned reads) = 0;
  virtual void on_evicted(uint64_t key, uint64_t size_bytes, Queue from) = 0;

  virtual PolicyReport report() const = 0;
};

// For a tier of `capacity_bytes`.
std::unique_ptr<Policy> make_policy(uint64_t capacity_bytes, uint64_t seed);

}  // namespace nezha::cache
