// The segment tier: what was written is read, until its segment is reclaimed; never beyond its size; pins hold.
#include "cache/tier/tier.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <thread>

#include "nezha/base/limits.h"
#include "test/support/scripted_origin.h"

namespace nezha::cache {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

std::unique_ptr<Tier> memory_tier(
    uint64_t size_bytes = 16 * kMiB, Reclaimed reclaimed = [](const auto&) {}) {
  auto tier = make_segment_tier({config::Medium::kMemory, "", size_bytes}, std::move(reclaimed));
  EXPECT_TRUE(tier);
  return std::move(tier.value());
}

std::string text_of(const std::optional<PinnedBytes>& pinned) { return pinned ? std::string(pinned->bytes) : "gone"; }

TEST(Tier, KeepsWhatWasWritten) {
  const auto tier = memory_tier();
  std::vector<std::pair<Place, std::string>> written;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{kMiB - 1}, size_t{kMiB}}) {
    const std::string bytes = test::pattern_bytes(size, size);
    const auto place = tier->write(1, bytes);
    ASSERT_TRUE(place);
    written.emplace_back(place.value(), bytes);
  }
  for (const auto& [place, bytes] : written) EXPECT_TRUE(text_of(tier->pin(place)) == bytes) << bytes.size();
}

TEST(Tier, ReclaimsTheOldestAndTellsWhoseItWas) {
  std::vector<uint64_t> lost;
  const auto tier =
      memory_tier(16 * kMiB, [&](const auto& owners) { lost.insert(lost.end(), owners.begin(), owners.end()); });
  const auto first = tier->write(7, test::pattern_bytes(kMiB, 1));
  ASSERT_TRUE(first);
  for (uint64_t i = 0; i < 40; ++i) {
    ASSERT_TRUE(tier->write(100 + i, test::pattern_bytes(kMiB, i)));
    EXPECT_LE(tier->used_bytes(), tier->size_bytes());
  }
  EXPECT_FALSE(tier->pin(first.value()));
  ASSERT_FALSE(lost.empty());
  EXPECT_EQ(lost.front(), 7u);
}

TEST(Tier, PinnedBytesStayWhereTheyAre) {
  const auto tier = memory_tier();
  const std::string bytes = test::pattern_bytes(1000, 1);
  const auto place = tier->write(1, bytes);
  const auto pinned = tier->pin(place.value());
  for (uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(tier->write(2, test::pattern_bytes(kMiB, i)));
  EXPECT_EQ(text_of(pinned), bytes);
  EXPECT_EQ(text_of(tier->pin(place.value())), bytes) << "a segment that is read is not reclaimed";
}

TEST(Tier, RefusesToWriteWhenEverythingIsRead) {
  const auto tier = memory_tier();
  std::vector<PinnedBytes> pins;
  bool refused = false;
  for (uint64_t i = 0; i < 100 && !refused; ++i) {
    const auto place = tier->write(1, test::pattern_bytes(kMiB, i));
    refused = !place;
    if (place) pins.push_back(*tier->pin(place.value()));
  }
  EXPECT_TRUE(refused);
  EXPECT_LE(tier->used_bytes(), tier->size_bytes());
  pins.clear();
  EXPECT_TRUE(tier->write(1, "again")) << "and goes on when they are gone";
}

TEST(Tier, PromisesNoMoreThanItHas) {
  const auto tier = memory_tier();
  auto first = tier->reserve(8 * kMiB);
  ASSERT_TRUE(first);
  EXPECT_FALSE(tier->reserve(8 * kMiB));
  EXPECT_FALSE(tier->reserve(uint64_t{1} << 62));
  EXPECT_FALSE(tier->reserve(UINT64_MAX));
  first.value().reset();
  EXPECT_TRUE(tier->reserve(8 * kMiB));
}

TEST(Tier, TooSmallIsRefusedAtStart) {
  const auto tier = make_segment_tier({config::Medium::kMemory, "", kMiB}, [](const auto&) {});
  ASSERT_FALSE(tier);
  EXPECT_EQ(tier.error().remedy, Remedy::kFixInput);
}

TEST(Tier, LeftoversOfAnEarlierProcessAreNotTrusted) {
  std::string name = (std::filesystem::temp_directory_path() / "nezha-test-XXXXXX").string();
  const std::string path = ::mkdtemp(name.data());
  {
    auto tier = make_segment_tier({config::Medium::kNvme, path, 16 * kMiB}, [](const auto&) {});
    ASSERT_TRUE(tier);
    ASSERT_TRUE(tier.value()->write(1, "old"));
  }
  auto tier = make_segment_tier({config::Medium::kNvme, path, 16 * kMiB}, [](const auto&) {});
  ASSERT_TRUE(tier);
  EXPECT_EQ(tier.value()->used_bytes(), 0u);
  EXPECT_FALSE(tier.value()->pin(Place{0, 0, 0, 3}));
  std::filesystem::remove_all(path);
}

// Writers, readers and reclaim at once: a pin shows what was written there, or nothing.
TEST(Tier, ConcurrentWritersNeverOverlap) {
  for (int round = 0; round < 3; ++round) {
    const auto tier = memory_tier(16 * kMiB, [](const auto&) { std::this_thread::yield(); });
    std::atomic<size_t> wrong{0};
    std::vector<std::thread> threads;
    for (uint64_t seed = 0; seed < 6; ++seed) {
      threads.emplace_back([&, seed] {
        std::mt19937_64 random(seed);
        std::vector<std::pair<Place, uint64_t>> mine;
        for (int i = 0; i < 150; ++i) {
          const uint64_t fill = random();
          const std::string bytes(1 + random() % kMiB, static_cast<char>(fill));
          if (const auto place = tier->write(seed, bytes)) mine.emplace_back(place.value(), fill);
          if (mine.empty()) continue;
          const auto& [place, kept] = mine[random() % mine.size()];
          const auto pinned = tier->pin(place);
          if (!pinned) continue;
          const char wanted = static_cast<char>(kept);
          wrong += pinned->bytes.find_first_not_of(wanted) != std::string_view::npos;
        }
      });
    }
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0u);
    EXPECT_LE(tier->used_bytes(), tier->size_bytes());
  }
}

}  // namespace
}  // namespace nezha::cache
