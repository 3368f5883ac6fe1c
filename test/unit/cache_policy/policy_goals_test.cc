// The goals of eviction and admission, replayed against the production policy: never worse than LRU and S3-FIFO by more
// than 0.005, training epochs hit what the cache holds, and both go on working when the load changes.
#include <gtest/gtest.h>

#include <algorithm>

#include "cache/policy/model/caches.h"
#include "cache/policy/policy.h"

namespace nezha::cache {
namespace {

using model::Trace;

constexpr unsigned kSegments = 128;
constexpr uint64_t kSeed = 1;

double live_ratio(const Trace& trace, const std::function<void(size_t, bool)>& seen = nullptr) {
  const auto policy = make_policy(trace.cache_bytes, kSeed);
  model::SegmentedTier tier(trace, *policy, kSegments);
  return model::hit_ratio(trace, tier, seen);
}

void expect_no_worse_than_references(const Trace& trace) {
  const double live = live_ratio(trace);
  EXPECT_GE(live, model::hit_ratio(trace, *model::make_exact_lru(trace)) - 0.005) << trace.name;
  EXPECT_GE(live, model::hit_ratio(trace, *model::make_exact_s3_fifo(trace)) - 0.005) << trace.name;
}

// The ratio from one part of the trace to another.
double live_ratio_between(const Trace& trace, double from, double to) {
  const auto size = static_cast<double>(trace.requests.size());
  size_t hits = 0, requests = 0;
  live_ratio(trace, [&](size_t i, bool hit) {
    if (static_cast<double>(i) < from * size || static_cast<double>(i) >= to * size) return;
    hits += hit;
    ++requests;
  });
  return static_cast<double>(hits) / static_cast<double>(requests);
}

TEST(PolicyGoals, Zipf) {
  expect_no_worse_than_references(model::zipf(1'000'000, 0.9, 0.01, 1'500'000, 1));
  expect_no_worse_than_references(model::zipf(1'000'000, 0.9, 0.1, 3'000'000, 2));
}

TEST(PolicyGoals, ScansMixedWithZipf) {
  expect_no_worse_than_references(model::zipf_with_scans(500'000, 0.01, 1'000'000, 3));
  expect_no_worse_than_references(model::zipf_with_scans(500'000, 0.1, 1'500'000, 4));
}

TEST(PolicyGoals, EverythingMixed) {
  expect_no_worse_than_references(model::mix(500'000, 0.01, 1'000'000, 5));
  expect_no_worse_than_references(model::mix(500'000, 0.1, 1'500'000, 6));
}

TEST(PolicyGoals, PopularityThatMoves) {
  expect_no_worse_than_references(model::drifting(100'000, 0.01, 500'000, 7));
  expect_no_worse_than_references(model::drifting(100'000, 0.1, 500'000, 8));
}

TEST(PolicyGoals, SizesThatDiffer) {
  Trace trace = model::zipf(200'000, 0.9, 0.05, 1'000'000, 9);
  model::vary_sizes(trace, 10);
  expect_no_worse_than_references(trace);
}

// Counted over all requests from the second epoch to the ninth.
TEST(PolicyGoals, EpochsHitWhatTheCacheHolds) {
  EXPECT_GE(live_ratio(model::shuffled_epochs(100'000, 0.5, 9, 11)), 0.48);
  EXPECT_GE(live_ratio(model::shuffled_epochs(100'000, 0.8, 9, 12)), 0.78);
  Trace trace = model::shuffled_epochs(50'000, 0.5, 9, 13);
  model::vary_sizes(trace, 14);
  EXPECT_GE(live_ratio(trace), 0.47);
}

// Two hundred objects or a few more, each larger than half a segment.
TEST(PolicyGoals, SmallCaches) {
  EXPECT_GE(live_ratio(model::shuffled_epochs(400, 0.5, 20, 15)), 0.43);
  EXPECT_GE(live_ratio(model::shuffled_epochs(400, 0.8, 20, 16)), 0.74);
  expect_no_worse_than_references(model::zipf(3'000, 0.9, 0.1, 100'000, 17));
}

// Another data set of the same size: it hits as the first one did once what was read often before has aged away, which
// takes three epochs.
TEST(PolicyGoals, ANewDataSetTakesOver) {
  const Trace trace =
      model::then(model::shuffled_epochs(20'000, 0.5, 5, 18), model::shuffled_epochs(20'000, 0.5, 5, 19));
  EXPECT_GE(live_ratio_between(trace, 0.2, 0.5), 0.48);
  EXPECT_GE(live_ratio_between(trace, 0.8, 1.0), 0.48);
}

TEST(PolicyGoals, TheLoadChangesAndChangesBack) {
  const Trace epochs = model::shuffled_epochs(20'000, 0.5, 15, 20);
  const Trace skewed = model::zipf(100'000, 0.9, 0.1, 300'000, 21);
  const Trace trace = model::then(model::then(epochs, skewed), epochs);
  EXPECT_GE(live_ratio_between(trace, 0.2, 0.33), 0.48);
  // As good as when it had the cache for itself from the start, once the contents have changed.
  EXPECT_GE(live_ratio_between(trace, 0.56, 0.66), live_ratio_between(skewed, 0.7, 1.0) - 0.01);
  // New objects again: soon most of the goal, all of it when the stale rest has been replaced.
  EXPECT_GE(live_ratio_between(trace, 0.80, 0.85), 0.40);
  EXPECT_GE(live_ratio_between(trace, 0.95, 1.0), 0.47);
}

}  // namespace
}  // namespace nezha::cache
