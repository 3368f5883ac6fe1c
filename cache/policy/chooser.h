// Chooser: tries every strategy in miniature on a sample of the keys and names the one that should decide.
// The sample is the keys whose hash falls below 2^-n; n is chosen so that a shadow holds at most kShadowObjectsMax
// objects, and small caches are simulated whole. What is held in all stays below kChooserBytesMax.
// Threads: none of its own, the owner locks; wants() may be called without the lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "cache/policy/shadow.h"

namespace nezha::cache {

inline constexpr size_t kShadowObjectsMax = 2048;
inline constexpr size_t kChooserBytesMax = size_t{3} << 19;  // 1.5 MiB

class Chooser {
 public:
  Chooser(uint64_t capacity_bytes, uint64_t seed, StrategyKind live);

  // Whether a request for this key is of the sample and there is something to learn: while nearly every request hits,
  // there is not.
  bool wants(uint64_t key) const { return awake_.load(std::memory_order_relaxed) && is_sampled(key); }
  // REQUIRES: wants(key). `size_bytes` 0: not known.
  void request(uint64_t key, uint64_t size_bytes);
  // An object is about to be stored; any key.
  void offer(uint64_t key, uint64_t size_bytes);

  StrategyKind live() const { return live_; }
  const Decider& decider_of(StrategyKind kind) const { return shadow_of(kind).decider(); }
  double hit_ratio_of(StrategyKind kind) const { return ratio(hits_[static_cast<size_t>(kind)]); }
  double hit_ratio_at_double_size() const { return ratio(double_size_hits_); }
  std::string_view name_of(StrategyKind kind) const { return shadow_of(kind).decider().name(); }
  size_t memory_bytes() const;

 private:
  bool is_sampled(uint64_t key) const {
    const uint64_t mixed = (key ^ seed_) * 0xd6e8feb86659fd93;
    return (mixed >> 32 & 0xffffffff) >> (32 - sample_shift_.load(std::memory_order_relaxed)) == 0;
  }
  const Shadow& shadow_of(StrategyKind kind) const { return shadows_[static_cast<size_t>(kind)]; }
  void compare(const std::array<bool, kStrategyKinds>& hits);
  void check_point();
  bool is_ahead(size_t kind) const;
  void choose();
  void adapt_sample();

  uint64_t capacity_bytes_;
  uint64_t seed_;
  StrategyKind live_;
  std::array<Shadow, kStrategyKinds> shadows_;
  Shadow double_size_;

  std::atomic<unsigned> sample_shift_{0};  // n
  std::atomic<bool> awake_{false};
  uint64_t requests_ = 0;  // of the sample, in all
  uint64_t offers_at_check_ = 0;
  uint64_t offers_ = 0;  // of the sample, in all
  unsigned quiet_checks_ = 0;

  // Against the live strategy, since the rival was last not ahead.
  struct Rival {
    double lead = 0;         // hits more, less the margin; never below 0
    double differing = 0.3;  // part of the requests where they differ, of late
  };
  std::array<Rival, kStrategyKinds> rivals_{};
  double caution_ = 1;  // factor to the lead that is needed; grows by switching, fades

  // Sums that forget, for the report.
  double ratio(double hits) const { return weight_ > 0 ? hits / weight_ : 0; }
  double weight_ = 0;
  std::array<double, kStrategyKinds> hits_{};
  double double_size_hits_ = 0;
};

}  // namespace nezha::cache
