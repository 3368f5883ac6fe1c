// The policy's promises besides its hit ratio: it fills, it ends, it is deterministic, small, and safe among threads.
#include "cache/policy/policy.h"

#include <gtest/gtest.h>

#include <thread>

#include "cache/policy/chooser.h"
#include "cache/policy/model/caches.h"

namespace nezha::cache {
namespace {

using model::key_of;

constexpr uint64_t kMiB = 1024 * 1024;

TEST(Policy, AdmitsEverythingWhileThereIsRoom) {
  const auto policy = make_policy(100 * kMiB, 1);
  for (uint32_t i = 0; i < 90; ++i) {
    policy->on_request(key_of(i), 0);
    EXPECT_TRUE(policy->admit(key_of(i), kMiB, (100 - i) * kMiB));
  }
}

TEST(Policy, AdmitsEverythingAgainAfterAPurge) {
  const model::Trace trace = model::shuffled_epochs(1'000, 0.5, 4, 1);
  const auto policy = make_policy(trace.cache_bytes, 1);
  model::SegmentedTier tier(trace, *policy, 64);
  model::hit_ratio(trace, tier);
  size_t refused = 0;
  for (uint32_t i = 0; i < 100; ++i) refused += !policy->admit(key_of(5'000 + i), 1, 0);
  EXPECT_GT(refused, 0u);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_TRUE(policy->admit(key_of(6'000 + i), 1, trace.cache_bytes / 2));
}

TEST(Policy, DropsASixteenthEvenWhenEverythingIsHot) {
  const auto policy = make_policy(100 * kMiB, 1);
  unsigned dropped = 0;
  for (unsigned segment = 1; segment <= 160; ++segment) {
    const Queue from = policy->victim(10 * kMiB, 90 * kMiB);
    for (uint64_t i = 0; i < 10; ++i) dropped += !policy->keep(i, kMiB / 10, from, 7);  // keys that would all stay
    EXPECT_GE(16 * (dropped + 10), 10 * segment);
  }
}

TEST(Policy, DecidesTheSameForTheSameSeedAndCalls) {
  const model::Trace trace = model::mix(20'000, 0.1, 200'000, 3);
  double ratios[2];
  uint64_t rewritten[2];
  for (int run = 0; run < 2; ++run) {
    const auto policy = make_policy(trace.cache_bytes, 5);
    model::SegmentedTier tier(trace, *policy, 128);
    ratios[run] = model::hit_ratio(trace, tier);
    rewritten[run] = tier.rewritten_bytes();
  }
  EXPECT_EQ(ratios[0], ratios[1]);
  EXPECT_EQ(rewritten[0], rewritten[1]);
}

TEST(Policy, IsSmall) {
  const auto idle = make_policy(uint64_t{1} << 50, 1);
  EXPECT_LE(idle->report().memory_bytes, 16 * 1024u);

  const model::Trace trace = model::zipf(400'000, 0.6, 0.5, 1'500'000, 4);
  const auto policy = make_policy(trace.cache_bytes, 1);
  model::SegmentedTier tier(trace, *policy, 128);
  model::hit_ratio(trace, tier);
  // Ghosts of as many objects as main holds, and the shadows.
  EXPECT_LE(policy->report().memory_bytes, kChooserBytesMax + 200'000 * 16);
}

TEST(Policy, ReportsWhatTwiceTheSizeWouldHit) {
  const model::Trace trace = model::shuffled_epochs(20'000, 0.5, 8, 6);
  const auto policy = make_policy(trace.cache_bytes, 1);
  model::SegmentedTier tier(trace, *policy, 128);
  model::hit_ratio(trace, tier);
  const PolicyReport report = policy->report();
  EXPECT_EQ(report.live, "fixed-subset");
  EXPECT_GT(report.hit_ratio_at_double_size, 0.9);
  for (const auto& candidate : report.candidates) {
    EXPECT_FALSE(candidate.name.empty());
    EXPECT_EQ(candidate.hit_ratio > 0.45, candidate.name == "fixed-subset") << candidate.name << candidate.hit_ratio;
  }
}

TEST(Policy, MayBeCalledByManyThreads) {
  const auto policy = make_policy(1'000 * kMiB, 1);
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&policy, thread] {
      model::Random random(thread);
      for (int i = 0; i < 20'000; ++i) {
        const uint64_t key = key_of(static_cast<uint32_t>(random.below(3'000)));
        policy->on_request(key, i % 2 == 0 ? kMiB : 0);
        policy->admit(key, kMiB, 0);
        if (i % 16 == 0) {
          const Queue from = policy->victim(100 * kMiB, 900 * kMiB);
          if (!policy->keep(key, kMiB, from, 1)) policy->on_evicted(key, kMiB, from);
          EXPECT_FALSE(policy->report().live.empty());
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace nezha::cache
