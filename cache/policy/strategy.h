// Strategy: one candidate of the policy; Decider: the decisions for one cache, by the strategy that is set.
// The same code decides for the tier and for its shadows in miniature. Calls mean what they mean in policy.h.
// Threads: none of their own; the owner locks. Nothing fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "cache/policy/ghost.h"
#include "cache/policy/policy.h"

namespace nezha::cache {

// s3-fifo: newcomers pass through a tenth of the cache; what is read there twice, or comes back soon, goes to main.
// lru: everything goes to main, what was read lately stays: second chances, which behaves like LRU.
// fixed-subset: keeps the keys below a threshold that moves until they fit, and lets nothing else in.
// frequency: s3-fifo with a small probation, and a main queue that asks for as many reads as most of it has.
enum class StrategyKind : uint8_t { kFixedSubset, kLru, kS3Fifo, kFrequency };
inline constexpr size_t kStrategyKinds = 4;

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string_view name() const = 0;
  // Sizes of objects are parts of the cache's capacity.
  // admit() is only for a full cache. `is_ghost`: the key was evicted lately.
  virtual std::optional<Queue> admit(uint64_t key, double size, bool is_ghost) = 0;
  virtual Queue victim(uint64_t probation_bytes, uint64_t main_bytes) = 0;
  virtual bool keep(uint64_t key, double size, Queue from, unsigned reads) = 0;
  // Whether an object evicted from there becomes a ghost.
  virtual bool remembers(uint64_t key, Queue from) const = 0;
  // Takes over what another of the same kind has learned.
  virtual void learn_from(const Strategy& other) = 0;
};

std::unique_ptr<Strategy> make_strategy(StrategyKind kind);

class Decider {
 public:
  Decider(StrategyKind kind, uint64_t capacity_bytes, size_t ghost_keys_max);

  std::optional<Queue> admit(uint64_t key, uint64_t size_bytes, uint64_t free_bytes);
  Queue victim(uint64_t probation_bytes, uint64_t main_bytes);
  bool keep(uint64_t key, uint64_t size_bytes, Queue from, unsigned reads);
  void on_evicted(uint64_t key, Queue from);

  // `teacher`: another decider that has been of this kind for a while, or null.
  void set_kind(StrategyKind kind, const Decider* teacher);
  void set_capacity(uint64_t capacity_bytes);
  StrategyKind kind() const { return kind_; }
  std::string_view name() const { return strategy_->name(); }
  bool is_full() const { return full_; }
  size_t memory_bytes() const { return sizeof *this + ghost_.memory_bytes(); }

 private:
  double part_of_capacity(uint64_t size_bytes) const;

  StrategyKind kind_;
  uint64_t capacity_bytes_;
  std::unique_ptr<Strategy> strategy_;
  GhostTable ghost_;  // shared by all kinds, so that it is warm when the kind changes
  double mean_bytes_ = 0;
  uint64_t filled_bytes_ = 0;  // admitted since the cache was last not full
  bool full_ = false;
  // Of the segment being reclaimed, in parts of the capacity.
  double kept_ = 0, dropped_ = 0;
  double owed_segments_ = 0;  // how much more should have been dropped
};

// A policy of one strategy that never changes: to compare with, in tests and benchmarks.
std::unique_ptr<Policy> make_single_policy(StrategyKind kind, uint64_t capacity_bytes);

}  // namespace nezha::cache
