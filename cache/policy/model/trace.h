// Trace: request sequences to judge policies by. Deterministic: the same recipe and seed give the same requests.
// Not part of the product; linked by tests and benchmarks only. Threads: values, no sharing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace nezha::cache::model {

// splitmix64: its output is also what turns an object's number into a key.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint64_t below(uint64_t bound) { return next() % bound; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

uint64_t key_of(uint32_t object);

struct Trace {
  std::string name;
  std::vector<uint32_t> requests;    // object numbers
  std::vector<uint32_t> size_bytes;  // by object
  size_t warmup_requests = 0;        // not counted
  uint64_t cache_bytes = 0;

  uint64_t total_bytes() const;
};

inline constexpr uint32_t kObjectBytes = 64 * 1024;

// Independent draws, the i-th object with weight 1/i^exponent.
Trace zipf(uint32_t objects, double exponent, double cache_part, size_t requests, uint64_t seed);
// Every object once per epoch, in a new order each time. The first epoch is not counted.
Trace shuffled_epochs(uint32_t objects, double cache_part, size_t epochs, uint64_t seed);
// Half of the requests Zipf(0.9) over `objects`; half sequential runs over as many cold objects, each of 1,000 to
// 20,000 objects from a random start. The cache is a part of the Zipf objects.
Trace zipf_with_scans(uint32_t objects, double cache_part, size_t requests, uint64_t seed);
// Zipf (half), shuffled epochs over a tenth as many objects (a quarter), scans (a quarter).
Trace mix(uint32_t objects, double cache_part, size_t requests, uint64_t seed);

// What is new is popular: Zipf(0.9) over the last `objects` that appeared; one appears every ten requests.
Trace drifting(uint32_t objects, double cache_part, size_t requests, uint64_t seed);

// Gives the objects sizes from 1/16 to 16 times kObjectBytes (log-uniform), keeping the cache's part of all bytes.
void vary_sizes(Trace& trace, uint64_t seed);
// The second trace after the first, over other objects, in a cache of the first's size. Nothing is warm-up.
Trace then(const Trace& first, const Trace& second);

}  // namespace nezha::cache::model
