// The ghost table: remembers the last keys for as long as it promises, and grows without forgetting.
#include "cache/policy/ghost.h"

#include <gtest/gtest.h>

#include <random>

namespace nezha::cache {
namespace {

TEST(GhostTable, RemembersTheLastKeysAndForgetsOlderOnes) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> keys(20'000);
  for (uint64_t& key : keys) key = random();
  GhostTable ghost(1 << 20);
  ghost.set_length(1'000);
  for (const uint64_t key : keys) ghost.insert(key);
  size_t recent = 0;
  for (size_t i = keys.size() - 1'000; i < keys.size(); ++i) recent += ghost.take(keys[i]);
  EXPECT_GE(recent, 950u);
  size_t old = 0;
  for (size_t i = 0; i < keys.size() - 1'000; ++i) old += ghost.take(keys[i]);
  EXPECT_LE(old, 5u);
}

TEST(GhostTable, GivesAKeyOnce) {
  GhostTable ghost(100);
  ghost.insert(42ULL << 40);
  EXPECT_TRUE(ghost.take(42ULL << 40));
  EXPECT_FALSE(ghost.take(42ULL << 40));
}

TEST(GhostTable, GrowsWithoutForgetting) {
  std::mt19937_64 random(2);
  GhostTable ghost(1 << 20);
  std::vector<uint64_t> keys;
  for (size_t length = 10; length < 10'000; length *= 2) {
    ghost.set_length(2 * length);
    while (keys.size() < length) ghost.insert(keys.emplace_back(random()));
  }
  size_t found = 0;
  for (const uint64_t key : keys) found += ghost.take(key);
  EXPECT_GE(found, keys.size() * 95 / 100);
}

TEST(GhostTable, StaysWithinItsBound) {
  GhostTable ghost(1'000);
  ghost.set_length(1'000'000'000);
  EXPECT_LE(ghost.memory_bytes(), 4 * 1'000 * sizeof(uint64_t));
}

}  // namespace
}  // namespace nezha::cache
