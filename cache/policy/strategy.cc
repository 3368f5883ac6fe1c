#include "cache/policy/strategy.h"

#include <algorithm>

#include "nezha/base/check.h"

namespace nezha::cache {
namespace {

// While a cache fills, this part of it is probation's.
constexpr uint64_t kProbationParts = 10;
// Fewer free bytes than this part of the cache do not make it "not full": reclaiming leaves some.
constexpr uint64_t kFreeParts = 32;
// This part of what is reclaimed is dropped whatever the strategy says, so that reclaiming ends; it may be owed for
// some segments.
constexpr double kDroppedLeast = 1.0 / 16, kOwedMax = 0.5;

// How many reads a record of main needs to stay: as many as leave some of each segment to drop. It rises while nearly
// everything stays, which both bounds the rewriting and sorts by frequency.
class ReadsNeeded {
 public:
  void segment_ends() {
    if (all_ == 0) return;
    const double share = kept_ / all_;
    if (share > kMostKept && needed_ < kNeededMax) ++needed_;
    if (share < kLeastKept && needed_ > 1) --needed_;
    all_ = kept_ = 0;
  }
  bool keep(double size, unsigned reads) {
    const bool kept = reads >= needed_;
    all_ += size;
    if (kept) kept_ += size;
    return kept;
  }

 private:
  static constexpr double kMostKept = 0.95, kLeastKept = 0.8;
  static constexpr unsigned kNeededMax = 8;  // more than a three-bit counter can say
  unsigned needed_ = 1;
  double all_ = 0;
  double kept_ = 0;
};

// S3-FIFO (Yang et al., SOSP 2023) by segments; kFrequency is the same with less probation.
class S3Fifo final : public Strategy {
 public:
  S3Fifo(std::string_view name, uint64_t probation_parts) : name_(name), probation_parts_(probation_parts) {}
  std::string_view name() const override { return name_; }
  std::optional<Queue> admit(uint64_t, double, bool is_ghost) override {
    return is_ghost ? Queue::kMain : Queue::kProbation;
  }
  Queue victim(uint64_t probation_bytes, uint64_t main_bytes) override {
    main_.segment_ends();
    const bool too_much = probation_bytes * probation_parts_ > probation_bytes + main_bytes;
    return too_much ? Queue::kProbation : Queue::kMain;
  }
  bool keep(uint64_t, double size, Queue from, unsigned reads) override {
    return from == Queue::kProbation ? reads > 1 : main_.keep(size, reads);
  }
  bool remembers(uint64_t, Queue from) const override { return from == Queue::kProbation; }
  void learn_from(const Strategy& other) override { main_ = static_cast<const S3Fifo&>(other).main_; }

 private:
  std::string_view name_;
  uint64_t probation_parts_;
  ReadsNeeded main_;
};

class Lru final : public Strategy {
 public:
  std::string_view name() const override { return "lru"; }
  std::optional<Queue> admit(uint64_t, double, bool) override { return Queue::kMain; }
  Queue victim(uint64_t probation_bytes, uint64_t) override {
    return probation_bytes > 0 ? Queue::kProbation : Queue::kMain;
  }
  bool keep(uint64_t, double, Queue, unsigned reads) override { return reads > 0; }
  bool remembers(uint64_t, Queue from) const override { return from == Queue::kProbation; }
  void learn_from(const Strategy&) override {}
};

// A loop larger than the cache (training epochs) gives nothing to who churns; who keeps a fixed part of it hits that
// part. The part is the keys below a threshold; what comes back after it was dropped shows that the threshold is too
// high, what is refused or dropped without coming back lifts it.
class FixedSubset final : public Strategy {
 public:
  std::string_view name() const override { return "fixed-subset"; }
  std::optional<Queue> admit(uint64_t key, double size, bool is_ghost) override {
    if (!is_chosen(key)) {
      move(lift_ * size);
      lift_ = std::min(kLiftMax, lift_ * (1 + kLiftGrows * size));
      return std::nullopt;
    }
    if (is_ghost) {
      move(-kReturnedLowers * size);
      lift_ = std::max(kLiftMin, lift_ * (1 - kLiftShrinks * size));
    }
    return Queue::kMain;
  }
  Queue victim(uint64_t probation_bytes, uint64_t) override {
    return probation_bytes > 0 ? Queue::kProbation : Queue::kMain;
  }
  bool keep(uint64_t key, double size, Queue, unsigned reads) override {
    grace_ -= size;
    if (!is_chosen(key)) return false;
    if (reads > 0 || grace_ > 0) return true;
    move(kDroppedLifts * size);
    return false;
  }
  bool remembers(uint64_t key, Queue) const override { return is_chosen(key); }
  void learn_from(const Strategy& other) override { part_ = static_cast<const FixedSubset&>(other).part_; }

 private:
  // By how much of itself the threshold moves per cacheful. A dropped object may not be seen coming back, because its
  // ghost is gone, hence the factor of four.
  static constexpr double kReturnedLowers = 1, kDroppedLifts = 0.25;
  // What is refused lifts it by lift_, which grows until something comes back: stale contents are soon replaced, and
  // where all is well, what is dropped and fetched again stays at 1 % of what is refused.
  static constexpr double kLiftMin = 0.005, kLiftMax = 0.05, kLiftGrows = 1, kLiftShrinks = 200;
  static constexpr double kPartMin = 1e-6, kPartAtFirst = 0.5;

  bool is_chosen(uint64_t key) const {
    return static_cast<double>((key * 0x9e3779b97f4a7c15) >> 11) * 0x1.0p-53 <= part_;
  }
  void move(double by) { part_ = std::clamp(part_ * (1 + by), kPartMin, 1.0); }

  double part_ = kPartAtFirst;
  double lift_ = kLiftMin;
  // So much is reclaimed before a chosen record without a read is dropped: until then it had no time to be read.
  double grace_ = 1;
};

}  // namespace

std::unique_ptr<Strategy> make_strategy(StrategyKind kind) {
  switch (kind) {
    case StrategyKind::kS3Fifo:
      return std::make_unique<S3Fifo>("s3-fifo", 10);
    case StrategyKind::kLru:
      return std::make_unique<Lru>();
    case StrategyKind::kFixedSubset:
      return std::make_unique<FixedSubset>();
    case StrategyKind::kFrequency:
      break;
  }
  return std::make_unique<S3Fifo>("frequency", 100);
}

Decider::Decider(StrategyKind kind, uint64_t capacity_bytes, size_t ghost_keys_max)
    : kind_(kind), capacity_bytes_(capacity_bytes), strategy_(make_strategy(kind)), ghost_(ghost_keys_max) {
  NEZHA_CHECK(capacity_bytes > 0, "a cache of no size");
}

std::optional<Queue> Decider::admit(uint64_t key, uint64_t size_bytes, uint64_t free_bytes) {
  const auto size = static_cast<double>(size_bytes);
  mean_bytes_ = mean_bytes_ == 0 ? size : mean_bytes_ + (size - mean_bytes_) / 256;
  const bool is_ghost = ghost_.take(key);
  if (full_ && free_bytes > capacity_bytes_ / kFreeParts) {
    full_ = false;
    filled_bytes_ = capacity_bytes_;  // probation has had its part
  }
  if (!full_ && free_bytes == 0) full_ = true;
  if (full_) return strategy_->admit(key, part_of_capacity(size_bytes), is_ghost);
  filled_bytes_ += size_bytes;
  return filled_bytes_ < capacity_bytes_ / kProbationParts ? Queue::kProbation : Queue::kMain;
}

Queue Decider::victim(uint64_t probation_bytes, uint64_t main_bytes) {
  full_ = true;
  if (kept_ + dropped_ > 0) {
    owed_segments_ = std::max(0.0, owed_segments_ + kDroppedLeast - dropped_ / (kept_ + dropped_));
  }
  kept_ = dropped_ = 0;
  // The table forgets early when its buckets fill unevenly: ask for as many keys as main holds.
  ghost_.set_length(static_cast<size_t>(static_cast<double>(main_bytes) / std::max(mean_bytes_, 1.0)));
  return strategy_->victim(probation_bytes, main_bytes);
}

bool Decider::keep(uint64_t key, uint64_t size_bytes, Queue from, unsigned reads) {
  const double size = part_of_capacity(size_bytes);
  const bool kept = strategy_->keep(key, size, from, reads) && owed_segments_ < kOwedMax;
  (kept ? kept_ : dropped_) += size;
  return kept;
}

void Decider::on_evicted(uint64_t key, Queue from) {
  if (strategy_->remembers(key, from)) ghost_.insert(key);
}

void Decider::set_capacity(uint64_t capacity_bytes) {
  NEZHA_CHECK(capacity_bytes > 0, "a cache of no size");
  capacity_bytes_ = capacity_bytes;
}

double Decider::part_of_capacity(uint64_t size_bytes) const {
  return static_cast<double>(size_bytes) / static_cast<double>(capacity_bytes_);
}

void Decider::set_kind(StrategyKind kind, const Decider* teacher) {
  if (kind == kind_) return;
  kind_ = kind;
  strategy_ = make_strategy(kind);
  if (teacher != nullptr && teacher->kind_ == kind) strategy_->learn_from(*teacher->strategy_);
}

}  // namespace nezha::cache
