#include "cache/policy/chooser.h"

#include <algorithm>

namespace nezha::cache {
namespace {

constexpr uint64_t kCheckRequests = 256;
constexpr double kForget = 1.0 / 4096;  // per request, of the reported ratios
constexpr double kForgetDiffering = 1.0 / 8192;

// A rival takes over when it is ahead by more than chance explains. Its lead is a sum of differences, less a margin
// per request, that never falls below 0 (Page's CUSUM test): it sees a change soon, whatever was before. It must be
// ahead over the longer time of the reported ratios too, or a single scan that is repeated would decide.
constexpr double kMargin = 0.002;
constexpr double kLeadMin = 24;
// Chance lifts such a sum to h in one of about exp(2 h margin / d) tries, d being the part of requests that differ.
constexpr double kLeadFactor = 1.5;  // of d / margin

// Kinds stand in order of trust. Who is trusted more than the live one needs less lead; who is trusted less needs more,
// since its contents spoil what the other has sorted out: by kind, lru most of all.
constexpr double kTrusted = 0.7;
constexpr std::array<double, kStrategyKinds> kHandicap{2, 16, 2, 1};
// Rivals with this part of the best one's lead are about equal.
constexpr double kAboutEqual = 0.7;
// Each switch costs a change of contents: the next one to a less trusted kind needs twice the lead, for a while.
constexpr double kCautionMax = 8;
constexpr double kCautionFades = 1.0 / 256;  // per check

// With fewer offers than this part of the requests, over so many checks, there is nothing to gain.
constexpr double kQuiet = 1.0 / 512;
constexpr unsigned kQuietChecks = 64;

constexpr unsigned kSampleShiftMax = 32;

}  // namespace

Chooser::Chooser(uint64_t capacity_bytes, uint64_t seed, StrategyKind live)
    : capacity_bytes_(capacity_bytes),
      seed_(seed),
      live_(live),
      shadows_{Shadow(StrategyKind::kFixedSubset, capacity_bytes), Shadow(StrategyKind::kLru, capacity_bytes),
               Shadow(StrategyKind::kS3Fifo, capacity_bytes), Shadow(StrategyKind::kFrequency, capacity_bytes)},
      double_size_(live, 2 * capacity_bytes) {}

void Chooser::request(uint64_t key, uint64_t size_bytes) {
  std::array<bool, kStrategyKinds> hits{};
  for (size_t i = 0; i < kStrategyKinds; ++i) {
    hits[i] = shadows_[i].request(key);
    if (!hits[i] && size_bytes > 0) shadows_[i].offer(key, size_bytes);
  }
  const bool double_hit = double_size_.request(key);
  if (!double_hit && size_bytes > 0) double_size_.offer(key, size_bytes);
  weight_ += kForget * (1 - weight_);
  double_size_hits_ += kForget * ((double_hit ? 1 : 0) - double_size_hits_);
  compare(hits);
  if (++requests_ % kCheckRequests == 0) check_point();
}

void Chooser::offer(uint64_t key, uint64_t size_bytes) {
  if (!is_sampled(key)) return;
  awake_.store(true, std::memory_order_relaxed);
  ++offers_;
  for (Shadow& shadow : shadows_) shadow.offer(key, size_bytes);
  double_size_.offer(key, size_bytes);
}

void Chooser::compare(const std::array<bool, kStrategyKinds>& hits) {
  const bool all_full = std::all_of(shadows_.begin(), shadows_.end(), [](const Shadow& s) { return s.is_full(); });
  const bool live_hit = hits[static_cast<size_t>(live_)];
  for (size_t i = 0; i < kStrategyKinds; ++i) {
    hits_[i] += kForget * ((hits[i] ? 1 : 0) - hits_[i]);
    if (!all_full) continue;
    Rival& rival = rivals_[i];
    const double gain = (hits[i] ? 1 : 0) - (live_hit ? 1 : 0);
    rival.differing += kForgetDiffering * (gain * gain - rival.differing);
    rival.lead += gain - kMargin;
    rival.lead = std::max(rival.lead, 0.0);
  }
}

void Chooser::check_point() {
  choose();
  adapt_sample();
  const uint64_t offers = offers_ - offers_at_check_;
  offers_at_check_ = offers_;
  quiet_checks_ = static_cast<double>(offers) < kQuiet * kCheckRequests ? quiet_checks_ + 1 : 0;
  if (quiet_checks_ >= kQuietChecks) awake_.store(false, std::memory_order_relaxed);
}

bool Chooser::is_ahead(size_t kind) const {
  const auto live = static_cast<size_t>(live_);
  const Rival& rival = rivals_[kind];
  const double lead_needed = std::max(kLeadMin, kLeadFactor * rival.differing / kMargin);
  const double factor = kind < live ? caution_ * kHandicap[kind] : kTrusted;
  return rival.lead > lead_needed * factor && hits_[kind] > hits_[live];
}

void Chooser::choose() {
  caution_ = std::max(1.0, caution_ * (1 - kCautionFades));
  const auto live = static_cast<size_t>(live_);
  size_t best = live;
  for (size_t i = 0; i < kStrategyKinds; ++i) {
    if (is_ahead(i) && rivals_[i].lead > rivals_[best].lead) best = i;
  }
  if (best == live) return;
  for (size_t i = best + 1; i < kStrategyKinds; ++i) {
    if (i != live && rivals_[i].lead >= kAboutEqual * rivals_[best].lead) best = i;
  }
  live_ = static_cast<StrategyKind>(best);
  rivals_ = {};
  caution_ = std::min(kCautionMax, caution_ * 2);
  double_size_.decider().set_kind(live_, &shadows_[best].decider());
}

void Chooser::adapt_sample() {
  size_t objects = double_size_.objects() / 2;
  bool all_full = true;
  for (const Shadow& shadow : shadows_) {
    objects = std::max(objects, shadow.objects());
    all_full = all_full && shadow.is_full();
  }
  unsigned shift = sample_shift_.load(std::memory_order_relaxed);
  if (objects > kShadowObjectsMax && shift < kSampleShiftMax) {
    ++shift;
  } else if (all_full && objects < kShadowObjectsMax / 8 && shift > 0) {
    --shift;
  } else {
    return;
  }
  sample_shift_.store(shift, std::memory_order_relaxed);
  const uint64_t capacity_bytes = std::max<uint64_t>(capacity_bytes_ >> shift, 1);
  const auto stays = [this](uint64_t key) { return is_sampled(key); };
  for (Shadow& shadow : shadows_) shadow.resize(capacity_bytes, stays);
  double_size_.resize(2 * capacity_bytes, stays);
}

size_t Chooser::memory_bytes() const {
  size_t bytes = sizeof *this + double_size_.memory_bytes();
  for (const Shadow& shadow : shadows_) bytes += shadow.memory_bytes();
  return bytes;
}

}  // namespace nezha::cache
