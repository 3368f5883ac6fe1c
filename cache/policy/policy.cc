#include "cache/policy/policy.h"

#include <mutex>

#include "cache/policy/chooser.h"
#include "cache/policy/strategy.h"

namespace nezha::cache {
namespace {

constexpr size_t kGhostKeysMax = size_t{1} << 22;

// One decider behind a mutex: what both policies share.
class DeciderPolicy : public Policy {
 public:
  Queue victim(uint64_t probation_bytes, uint64_t main_bytes) override {
    const std::lock_guard lock(mutex_);
    return decider_.victim(probation_bytes, main_bytes);
  }
  bool keep(uint64_t key, uint64_t size_bytes, Queue from, unsigned reads) override {
    const std::lock_guard lock(mutex_);
    return decider_.keep(key, size_bytes, from, reads);
  }
  void on_evicted(uint64_t key, uint64_t, Queue from) override {
    const std::lock_guard lock(mutex_);
    decider_.on_evicted(key, from);
  }

 protected:
  DeciderPolicy(StrategyKind kind, uint64_t capacity_bytes) : decider_(kind, capacity_bytes, kGhostKeysMax) {}

  mutable std::mutex mutex_;
  Decider decider_;
};

// One strategy, for ever.
class SinglePolicy final : public DeciderPolicy {
 public:
  SinglePolicy(StrategyKind kind, uint64_t capacity_bytes) : DeciderPolicy(kind, capacity_bytes) {}

  void on_request(uint64_t, uint64_t) override {}
  std::optional<Queue> admit(uint64_t key, uint64_t size_bytes, uint64_t free_bytes) override {
    const std::lock_guard lock(mutex_);
    return decider_.admit(key, size_bytes, free_bytes);
  }
  PolicyReport report() const override {
    const std::lock_guard lock(mutex_);
    PolicyReport report;
    report.live = decider_.name();
    report.memory_bytes = decider_.memory_bytes();
    return report;
  }
};

// The strategy that the chooser names.
class ChosenPolicy final : public DeciderPolicy {
 public:
  ChosenPolicy(uint64_t capacity_bytes, uint64_t seed)
      : DeciderPolicy(kFirst, capacity_bytes), chooser_(capacity_bytes, seed, kFirst) {}

  void on_request(uint64_t key, uint64_t size_bytes) override {
    if (!chooser_.wants(key)) return;
    const std::lock_guard lock(mutex_);
    if (!chooser_.wants(key)) return;  // the sample may have changed
    chooser_.request(key, size_bytes);
    if (chooser_.live() == decider_.kind()) return;
    decider_.set_kind(chooser_.live(), &chooser_.decider_of(chooser_.live()));
    ++switches_;
  }
  std::optional<Queue> admit(uint64_t key, uint64_t size_bytes, uint64_t free_bytes) override {
    const std::lock_guard lock(mutex_);
    chooser_.offer(key, size_bytes);
    return decider_.admit(key, size_bytes, free_bytes);
  }

  PolicyReport report() const override {
    const std::lock_guard lock(mutex_);
    PolicyReport report;
    report.live = decider_.name();
    for (size_t i = 0; i < kStrategyKinds; ++i) {
      const auto kind = static_cast<StrategyKind>(i);
      report.candidates[i] = {chooser_.name_of(kind), chooser_.hit_ratio_of(kind)};
    }
    report.hit_ratio_at_double_size = chooser_.hit_ratio_at_double_size();
    report.switches = switches_;
    report.memory_bytes = decider_.memory_bytes() + chooser_.memory_bytes();
    return report;
  }

 private:
  static constexpr StrategyKind kFirst = StrategyKind::kFixedSubset;

  Chooser chooser_;
  uint64_t switches_ = 0;
};

}  // namespace

std::unique_ptr<Policy> make_policy(uint64_t capacity_bytes, uint64_t seed) {
  return std::make_unique<ChosenPolicy>(capacity_bytes, seed);
}

std::unique_ptr<Policy> make_single_policy(StrategyKind kind, uint64_t capacity_bytes) {
  return std::make_unique<SinglePolicy>(kind, capacity_bytes);
}

}  // namespace nezha::cache
