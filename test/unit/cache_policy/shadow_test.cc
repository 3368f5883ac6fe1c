// The shadow: holds at most its capacity, hits what it holds, keeps only the sample when it is resized.
#include "cache/policy/shadow.h"

#include <gtest/gtest.h>

#include <set>

#include "cache/policy/model/trace.h"

namespace nezha::cache {
namespace {

using model::key_of;

constexpr StrategyKind kKinds[] = {StrategyKind::kFixedSubset, StrategyKind::kLru, StrategyKind::kS3Fifo,
                                   StrategyKind::kFrequency};

TEST(Shadow, HoldsWhatFits) {
  for (const StrategyKind kind : kKinds) {
    Shadow shadow(kind, 1'000);
    for (uint32_t i = 0; i < 10; ++i) shadow.offer(key_of(i), 100);
    for (uint32_t i = 0; i < 10; ++i) EXPECT_TRUE(shadow.request(key_of(i)));
    EXPECT_FALSE(shadow.request(key_of(10)));
    EXPECT_EQ(shadow.objects(), 10u);
  }
}

TEST(Shadow, NeverHoldsMoreThanItsCapacity) {
  for (const StrategyKind kind : kKinds) {
    model::Random random(7);
    Shadow shadow(kind, 1'000);
    for (int i = 0; i < 50'000; ++i) {
      const uint64_t key = key_of(static_cast<uint32_t>(random.below(300)));
      if (!shadow.request(key)) shadow.offer(key, 10);
      ASSERT_LE(shadow.objects(), 100u);
    }
    EXPECT_GT(shadow.objects(), 80u);
  }
}

TEST(Shadow, StoresNothingThatWouldTakeAQuarterOfIt) {
  Shadow shadow(StrategyKind::kLru, 1'000);
  shadow.offer(1, 251);
  EXPECT_FALSE(shadow.request(1));
}

TEST(Shadow, KeepsOnlyTheSampleWhenItIsResized) {
  for (const StrategyKind kind : kKinds) {
    Shadow shadow(kind, 1'000);
    for (uint32_t i = 0; i < 100; ++i) shadow.offer(key_of(i), 10);
    shadow.resize(500, [](uint64_t key) { return key % 2 == 0; });
    for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(shadow.request(key_of(i)), key_of(i) % 2 == 0);
    // The places given back are used again, and the smaller capacity holds.
    for (uint32_t i = 100; i < 1'000; ++i) shadow.offer(key_of(2 * i), 10);
    EXPECT_LE(shadow.objects(), 50u + 20u);
  }
}

}  // namespace
}  // namespace nezha::cache
