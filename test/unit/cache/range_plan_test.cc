#include "cache/fill/range_plan.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace nezha::cache {
namespace {

using http::ByteRange;

TEST(RangePlan, GivesAlignedPartsInOrder) {
  RangePlan plan({5, 35}, 10);
  for (const ByteRange part : {ByteRange{5, 10}, ByteRange{10, 20}, ByteRange{20, 30}, ByteRange{30, 35}})
    EXPECT_EQ(plan.take(), part);
  EXPECT_EQ(plan.take(), std::nullopt);
}

TEST(RangePlan, GivesWhatBeginsSomewhere) {
  RangePlan plan({0, 40}, 10);
  EXPECT_EQ(plan.take_at(10), (ByteRange{10, 20}));
  EXPECT_EQ(plan.take_at(10), std::nullopt);
  EXPECT_EQ(plan.take_at(25), (ByteRange{25, 30}));
  EXPECT_EQ(plan.take_at(40), std::nullopt);
  plan.give_back({12, 20});
  EXPECT_EQ(plan.take(), (ByteRange{0, 10}));
  EXPECT_EQ(plan.take(), (ByteRange{12, 20})) << "joined with 20 to 25, and cut where a part ends";
  EXPECT_EQ(plan.take(), (ByteRange{20, 25}));
  EXPECT_EQ(plan.take(), (ByteRange{30, 40}));
  plan.give_back({7, 7});
  EXPECT_EQ(plan.take(), std::nullopt);
}

// Against a list of bytes.
TEST(RangePlan, GivesEachByteOnceWhateverComesBack) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    std::mt19937 dice(seed);
    const uint64_t begin = dice() % 20, end = begin + dice() % 100, part_bytes = 1 + dice() % 30;
    std::vector<bool> left(end, true);
    std::fill(left.begin(), left.begin() + static_cast<long>(std::min(begin, end)), false);
    RangePlan plan({begin, end}, part_bytes);
    for (int step = 0; step < 200; ++step) {
      const uint64_t position = dice() % (end + 1);
      const bool any = dice() % 2;
      const auto part = any ? plan.take() : plan.take_at(position);
      const bool expected =
          any ? std::find(left.begin(), left.end(), true) != left.end() : position < end && left[position];
      ASSERT_EQ(part.has_value(), expected) << "seed " << seed;
      if (!part) continue;
      ASSERT_LT(part->begin, part->end);
      ASSERT_EQ(part->begin / part_bytes, (part->end - 1) / part_bytes) << "seed " << seed;
      for (uint64_t at = part->begin; at < part->end; ++at) {
        ASSERT_TRUE(left[at]) << "seed " << seed;
        left[at] = false;
      }
      const uint64_t reached = part->begin + dice() % (part->size_bytes() + 1);
      plan.give_back({reached, part->end});
      for (uint64_t at = reached; at < part->end; ++at) left[at] = true;
    }
  }
}

}  // namespace
}  // namespace nezha::cache
