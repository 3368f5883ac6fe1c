// What one of two durable tiers loses must not bring back what the other one still holds.
#include <gtest/gtest.h>

#include "cache/store/store.h"
#include "test/support/faulty_medium.h"
#include "test/support/scripted_origin.h"
#include "test/support/store_box.h"

namespace nezha::cache {
namespace {

using test::Call;
using test::Faults;
using test::head_of;
using test::pattern_bytes;
using test::StoreBox;
using test::TestDisk;

constexpr uint64_t kSegment = 64 * 1024;
constexpr uint64_t kSize = 16 * kSegment;

CacheKey key_of(int i) { return {"data.example/" + std::to_string(i), ""}; }

std::unique_ptr<StoreBox> open(std::unique_ptr<Medium> upper, std::unique_ptr<Medium> lower) {
  std::vector<Store::TierPlan> plans;
  if (upper) plans.push_back({std::move(upper), kSize, kSegment});
  plans.push_back({std::move(lower), 4 * kSize, kSegment});
  return std::make_unique<StoreBox>(std::move(plans));
}

// The object moved down while it was everybody's; then a reader had to prove who he is.
TEST(TwoTiers, WhatBecamePrivateStaysSoWithoutTheUpperTier) {
  TestDisk upper, lower;
  auto box = open(upper.medium(), lower.medium());
  constexpr int kObjects = 90;
  for (int i = 0; i < kObjects; ++i)
    ASSERT_TRUE(box->put(key_of(i), head_of("\"v\"", 20'000), pattern_bytes(20'000, 1)));
  int closed = 0;
  for (int i = 0; i < kObjects; ++i) {
    const auto head = box->find(key_of(i));
    if (!head || !box->read(key_of(i))) continue;
    auto next = std::make_shared<StoredHead>(*head);
    next->credentials = Credentials::kField;
    complete(*next);
    test::run_task(box->store().keep_or_drop(key_of(i), head, next));
    ++closed;
  }
  ASSERT_GT(closed, 20);
  box.reset();
  for (const bool with_upper : {true, false}) {
    TestDisk one = upper.copy(), two = lower.copy();
    auto later = open(with_upper ? one.medium() : nullptr, two.medium());
    for (int i = 0; i < kObjects; ++i) {
      const auto head = later->find(key_of(i));
      if (!head || !later->read(key_of(i))) continue;
      EXPECT_NE(head->credentials, Credentials::kNone) << i << " " << with_upper;
    }
  }
}

// The lower tier can be read at first, and not again: what was forgotten with it and then invalidated stays away.
TEST(TwoTiers, WhatIsForgottenWithATierDoesNotComeBack) {
  constexpr int kObjects = 20;
  constexpr uint64_t kBytes = 260'000;
  TestDisk upper, lower;
  auto box = open(upper.medium(), lower.medium());
  for (int i = 0; i < kObjects; ++i)
    ASSERT_TRUE(box->put(key_of(i), head_of("\"v\"", kBytes), pattern_bytes(kBytes, static_cast<uint64_t>(i))));
  box.reset();
  Faults count;
  {
    TestDisk one = upper.copy(), two = lower.copy();
    open(one.medium(), test::make_faulty_medium(two.medium(), count));
  }
  const uint64_t loads = count.calls(Call::kLoad);
  int forgotten = 0;
  for (uint64_t at = loads > 64 ? loads - 64 : 0; at < loads; ++at) {
    TestDisk one = upper.copy(), two = lower.copy();
    Faults faults;
    faults.arm(Call::kLoad, at, 1);
    std::vector<int> gone;
    {
      auto broken = open(one.medium(), test::make_faulty_medium(two.medium(), faults));
      for (int i = 0; i < kObjects; ++i) {
        if (broken->find(key_of(i))) continue;
        gone.push_back(i);
        broken->invalidate(key_of(i).path);
      }
    }
    forgotten += static_cast<int>(gone.size());
    auto again = open(one.medium(), two.medium());
    for (const int i : gone) EXPECT_FALSE(again->find(key_of(i))) << "load " << at << ", object " << i;
  }
  EXPECT_GT(forgotten, 0);
}

}  // namespace
}  // namespace nezha::cache
