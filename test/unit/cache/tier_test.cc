// Tiers: records come back as they were written, across reclaiming, pins, failures of the medium at each of its calls,
// and restarts on whatever is found there.
#include "cache/tier/tier.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "test/support/event.h"
#include "test/support/faulty_medium.h"
#include "test/support/manual_clock.h"
#include "test/support/scripted_origin.h"
#include "test/support/temporary_directory.h"

namespace nezha::cache {
namespace {

using test::Call;
using test::Faults;
using test::TestDisk;

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kSegment = 64 * kKiB;
constexpr uint64_t kSize = 16 * kSegment;
const test::ManualClock kClock;

std::unique_ptr<Tier> open(std::unique_ptr<Medium> medium, uint64_t size = kSize, uint64_t segment = kSegment) {
  auto tier = Tier::open(std::move(medium), {0, size, segment}, kClock);
  EXPECT_TRUE(tier) << tier.error().message;
  return tier ? std::move(tier.value()) : nullptr;
}

Record extent(uint64_t key, uint64_t offset = 0, uint64_t generation = 1) {
  return {RecordKind::kExtent, {key, key}, generation, offset};
}

// Every record that a restart finds, with its bytes where they are not damaged.
std::map<uint64_t, std::string> recovered(Tier& tier) {
  std::map<uint64_t, std::string> out;
  EXPECT_TRUE(tier.visit_recovered([&](const Record& record, const Place& place) {
    const bool data = record.kind == RecordKind::kExtent || record.kind == RecordKind::kHead;
    if (data && !tier.make_ready(place)) return;
    out[record.key.path] = data ? std::string(tier.pin(place).bytes) : "tombstone";
  }));
  return out;
}

bool reclaim(Tier& tier, Queue queue = Queue::kProbation) {
  const auto victim = tier.take_victim(queue);
  if (!victim || !tier.wipe(*victim)) return false;
  tier.give_back(*victim);
  return true;
}

// The kernel still sends what a process that died had begun to send, from the file's own pages.
TEST(Tier, WhatAnEarlierProcessWasSendingStaysAsItWas) {
  const test::TemporaryDirectory folder;
  const auto medium = [&] { return make_medium({config::Medium::kNvme, folder.path() + "/tier", kSize}).value(); };
  auto tier = open(medium());
  const std::string bytes = test::pattern_bytes(32 * 1024, 1);
  auto appended = tier->append(Queue::kProbation, extent(0), bytes);
  ASSERT_TRUE(appended);
  const uint64_t number = appended.value().place.number();
  if (appended.value().bytes.file < 0) GTEST_SKIP() << "nothing is sent from files here";
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  auto at = static_cast<loff_t>(appended.value().bytes.file_offset());
  const ssize_t held = ::splice(appended.value().bytes.file, &at, pipe[1], nullptr, bytes.size(), 0);
  ASSERT_GT(held, 4096);
  appended = fail(Remedy::kAbsent, "let go");
  for (uint64_t i = 1; i < 40; ++i) (void)tier->append(Queue::kProbation, extent(i), bytes);  // its segment is sealed
  const auto victim = tier->take_victim(Queue::kProbation);
  ASSERT_TRUE(victim);
  ASSERT_EQ(victim->number, number);
  ASSERT_TRUE(tier->wipe(*victim));
  tier.reset();  // before the segment is given back
  tier = open(medium());
  const std::string other = test::pattern_bytes(32 * 1024, 2);
  for (uint64_t i = 0; i < 400; ++i) (void)tier->append(Queue::kProbation, extent(1000 + i), other);
  std::string sent(static_cast<size_t>(held), ' ');
  ASSERT_EQ(::read(pipe[0], sent.data(), sent.size()), held);
  EXPECT_TRUE(bytes.starts_with(sent));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(Tier, RecordsComeBackAsTheyWere) {
  for (const bool memory : {true, false}) {
    TestDisk disk;
    const auto tier = open(memory ? make_medium({config::Medium::kMemory, "", 0}).value() : disk.medium());
    std::vector<std::pair<Tier::Appended, std::string>> kept;
    for (uint64_t i = 0; i < 60; ++i) {
      const std::string bytes = test::pattern_bytes(i * 211 % 9000, i);
      auto appended = tier->append(i % 3 ? Queue::kProbation : Queue::kMain, extent(i), bytes);
      ASSERT_TRUE(appended) << i;
      EXPECT_EQ(appended.value().place.offset_bytes() % (bytes.size() >= 4096 ? 4096 : 64), 0u);
      kept.emplace_back(std::move(appended.value()), bytes);
    }
    for (const auto& [appended, bytes] : kept) {
      EXPECT_TRUE(appended.bytes.bytes == bytes);
      EXPECT_TRUE(tier->pin(appended.place).bytes == bytes);
      EXPECT_TRUE(tier->is_ready(appended.place));
    }
    EXPECT_LE(tier->used_bytes(), tier->size_bytes());
  }
}

TEST(Tier, FillsToItsSizeAndNoFurther) {
  const auto tier = open(make_medium({config::Medium::kMemory, "", 0}).value());
  uint64_t count = 0;
  for (;; ++count) {
    const auto appended = tier->append(Queue::kProbation, extent(count), test::pattern_bytes(10'000, count));
    if (appended) continue;
    EXPECT_EQ(appended.error().remedy, Remedy::kRetryLater);
    break;
  }
  EXPECT_EQ(count, 15u * 4) << "all segments but the one kept back";
  EXPECT_FALSE(tier->has_free_segment());
  EXPECT_TRUE(tier->append_kept(extent(1), "kept")) << "reclaiming has the last one";
  EXPECT_FALSE(tier->append(Queue::kProbation, extent(1), std::string(10'000, 'x')));
  ASSERT_TRUE(reclaim(*tier));
  ASSERT_TRUE(reclaim(*tier));
  EXPECT_TRUE(tier->append(Queue::kProbation, extent(1), std::string(10'000, 'x')));
}

TEST(Tier, PinnedBytesOutliveReclaiming) {
  const auto tier = open(make_medium({config::Medium::kMemory, "", 0}).value());
  const std::string bytes = test::pattern_bytes(5000, 1);
  auto appended = tier->append(Queue::kProbation, extent(1), bytes);
  PinnedBytes pinned = std::move(appended.value().bytes);
  for (uint64_t i = 0; i < 400; ++i) {
    if (!tier->append(Queue::kProbation, extent(2 + i), test::pattern_bytes(9000, i))) {
      ASSERT_TRUE(reclaim(*tier));
    }
    ASSERT_TRUE(pinned.bytes == bytes);
  }
  // Pinned when its turn comes between being taken and being given back: it waits for its reader.
  pinned = {};
  const auto victim = tier->take_victim(Queue::kProbation);
  ASSERT_TRUE(victim);
  pinned = tier->pin({victim->number, 0, static_cast<uint32_t>(format::kDataBegin / 64), 5000});
  const std::string before(pinned.bytes);
  ASSERT_TRUE(tier->wipe(*victim));
  tier->give_back(*victim);
  for (uint64_t i = 0; i < 400; ++i) {
    if (!tier->append(Queue::kProbation, extent(1000 + i), test::pattern_bytes(9000, i))) {
      ASSERT_TRUE(reclaim(*tier));
    }
    ASSERT_TRUE(pinned.bytes == before);
  }
}

TEST(Tier, PromisesNoMoreThanItHas) {
  const auto tier = open(make_medium({config::Medium::kMemory, "", 0}).value());
  auto first = tier->reserve(10 * kSegment);
  ASSERT_TRUE(first);
  EXPECT_FALSE(tier->reserve(4 * kSegment));
  EXPECT_TRUE(tier->reserve(3 * kSegment));
  EXPECT_FALSE(tier->reserve(UINT64_MAX));
  first.reset();
  EXPECT_TRUE(tier->reserve(13 * kSegment));
  EXPECT_FALSE(Tier::open(make_medium({config::Medium::kMemory, "", 0}).value(), {0, 1 << 20, 0}, kClock));
}

TEST(Tier, ConcurrentWritersNeverOverlap) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto tier = open(make_medium({config::Medium::kMemory, "", 0}).value());
  std::mutex one_at_a_time;
  std::atomic<size_t> wrong{0}, written{0};
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      std::mt19937_64 random(seed + thread);
      std::vector<std::pair<PinnedBytes, char>> mine;
      for (int i = 0; i < 2000; ++i) {
        const char fill = static_cast<char>(random());
        auto appended = tier->append(random() % 2 ? Queue::kMain : Queue::kProbation, extent(thread),
                                     std::string(random() % 9000, fill));
        if (appended) {
          ++written;
          mine.emplace_back(std::move(appended.value().bytes), fill);
          if (mine.size() > 3) mine.erase(mine.begin());
        } else {
          std::lock_guard lock(one_at_a_time);
          (void)reclaim(*tier, random() % 2 ? Queue::kMain : Queue::kProbation);
        }
        for (const auto& [bytes, wanted] : mine)
          wrong += bytes.bytes.find_first_not_of(wanted) != std::string_view::npos;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(written, 1000u);
  EXPECT_LE(tier->used_bytes(), tier->size_bytes());
}

// Fills a disk with `count` records and some tombstones; one segment after the other.
TestDisk filled_disk(uint64_t count, Queue queue = Queue::kProbation) {
  TestDisk disk;
  const auto tier = open(disk.medium());
  for (uint64_t i = 0; i < count; ++i) EXPECT_TRUE(tier->append(queue, extent(i), test::pattern_bytes(10'000, i)));
  return disk;
}

TEST(TierRestart, EverythingIsThere) {
  const TestDisk disk = filled_disk(40);
  const auto tier = open(disk.medium());
  const auto found = recovered(*tier);
  ASSERT_EQ(found.size(), 40u);
  for (const auto& [key, bytes] : found) EXPECT_TRUE(bytes == test::pattern_bytes(10'000, key)) << key;
  EXPECT_EQ(tier->recovery().damaged, 0u);
  EXPECT_EQ(tier->recovery().segments, 10u);
}

TEST(TierRestart, WhatWasGivenBackIsGone) {
  TestDisk disk;
  {
    const auto tier = open(disk.medium());
    for (uint64_t i = 0; i < 12; ++i) ASSERT_TRUE(tier->append(Queue::kProbation, extent(i), std::string(10'000, 'a')));
    ASSERT_TRUE(reclaim(*tier));
  }
  const auto tier = open(disk.medium());
  EXPECT_EQ(recovered(*tier).size(), 8u) << "of three segments with four each, the first";
}

// The newest segment is given back, the process dies before another is opened: its number must not be given to it
// again, or what lies there would count as written.
TEST(TierRestart, ASequenceNumberIsUsedOnce) {
  TestDisk disk = filled_disk(3);
  {
    const auto tier = open(disk.medium());
    ASSERT_TRUE(reclaim(*tier));
  }
  disk = disk.copy();
  {
    const auto tier = open(disk.medium());
    ASSERT_TRUE(tier->append(Queue::kProbation, extent(100), ""));
  }
  const auto tier = open(disk.medium());
  const auto found = recovered(*tier);
  EXPECT_EQ(found.size(), 1u);
  EXPECT_TRUE(found.contains(100));
}

TEST(TierRestart, AfterAnyWriteOrPartOfOne) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 150; ++round) {
    TestDisk disk;
    disk.copy_later(random() % 120, random());
    std::vector<uint64_t> finished;  // when the copy was made
    std::unique_ptr<TestDisk> copy;
    uint64_t next = 0;
    {
      const auto tier = open(disk.medium());
      while (!copy) {
        const auto queue = next % 2 ? Queue::kMain : Queue::kProbation;
        const std::string bytes = test::pattern_bytes(next * 37 % 10'000, next);
        ASSERT_TRUE(tier->append(queue, extent(next), bytes));
        copy = disk.take_copy();
        if (!copy) finished.push_back(next);
        ++next;
      }
    }
    const auto tier = open(copy->medium());
    EXPECT_EQ(tier->recovery().damaged + tier->recovery().distrusted, 0u) << "dying damages nothing";
    const auto found = recovered(*tier);
    for (const uint64_t key : finished) EXPECT_TRUE(found.contains(key)) << key << " was published";
    for (const auto& [key, bytes] : found) EXPECT_TRUE(bytes == test::pattern_bytes(key * 37 % 10'000, key)) << key;
  }
}

TEST(TierRestart, ForeignAndOtherVersionsAreSetAside) {
  for (const uint64_t offset : {0, 8}) {  // magic, version
    TestDisk disk = filled_disk(40);
    for (const uint32_t number : disk.numbers()) disk.poke(number, offset, 2);
    const auto tier = open(disk.medium());
    EXPECT_EQ(recovered(*tier).size(), 0u);
    EXPECT_EQ(tier->recovery().set_aside.size(), 10u);
    EXPECT_EQ(disk.set_aside(), 10u) << "not lost";
    EXPECT_TRUE(tier->append(Queue::kProbation, extent(1), "x"));
  }
}

// Tombstones lie in main. Where a segment of main is lost, nothing that they may have forbidden is believed.
TEST(TierRestart, WithoutItsTombstonesNothingIsBelieved) {
  // Two loads for each segment, the header's page and the descriptors; main's is the eleventh.
  for (const uint64_t load : {0, 1, 20, 21}) {
    TestDisk disk;
    {
      const auto tier = open(disk.medium());
      for (uint64_t i = 0; i < 40; ++i)
        ASSERT_TRUE(tier->append(Queue::kProbation, extent(i), std::string(10'000, 'a')));
      ASSERT_TRUE(tier->append_tombstone({RecordKind::kPathTombstone, {77, 0}, 9, 0}, true));
    }
    Faults faults;
    faults.arm(Call::kLoad, load);
    const auto tier = open(test::make_faulty_medium(disk.medium(), faults));
    EXPECT_EQ(tier->recovery().damaged, 1u);
    // Without its header nobody knows whose a segment was.
    const size_t left = load == 1 ? 36u + 1u : 0u;
    EXPECT_EQ(recovered(*tier).size(), left) << load;
    EXPECT_EQ(tier->recovery().distrusted, left > 0 ? 0u : 10u) << load;
  }
}

TEST(TierRestart, ADamagedTombstoneStillForbids) {
  TestDisk disk;
  {
    const auto tier = open(disk.medium());
    ASSERT_TRUE(tier->append_tombstone({RecordKind::kPathTombstone, {3, 0}, 9, 0}, true));
  }
  disk.poke(0, format::slot_offset(kSegment, 0) + 5, 16);
  EXPECT_EQ(recovered(*open(disk.medium())).size(), 1u);
}

TEST(TierRestart, TheCountIsOnlyAHint) {
  for (const char change : {char{1}, char{8}, static_cast<char>(0x80)}) {
    for (uint64_t byte = 0; byte < 8; ++byte) {
      TestDisk disk = filled_disk(5);
      disk.poke(0, format::kCountOffset + byte, change);
      const auto tier = open(disk.medium());
      EXPECT_EQ(recovered(*tier).size(), 5u) << byte;
    }
  }
}

TEST(TierRestart, FewerSegmentsThanBefore) {
  for (const auto queue : {Queue::kProbation, Queue::kMain}) {
    TestDisk disk;
    {
      const auto tier = open(disk.medium());
      for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(tier->append(queue, extent(i), std::string(10'000, 'a')));
      for (uint64_t i = 0; i < 30; ++i) ASSERT_TRUE(tier->append(Queue::kProbation, extent(50 + i), "small"));
      ASSERT_TRUE(tier->append_tombstone({RecordKind::kPathTombstone, {77, 0}, 9, 0}, true));
      for (uint64_t i = 0; i < 45; ++i) ASSERT_TRUE(tier->append(queue, extent(100 + i), std::string(10'000, 'b')));
    }
    for (int restart = 0; restart < 3; ++restart) {
      const auto tier = open(disk.medium(), 8 * kSegment);
      EXPECT_LE(disk.numbers().size(), 8u);
      const auto found = recovered(*tier);
      if (found.contains(77)) {
        EXPECT_EQ(found.at(77), "tombstone") << "restart " << restart;
      }
      EXPECT_TRUE(found.contains(144)) << "the newest stay";
    }
  }
}

TEST(TierRestart, OfAnotherSize) {
  TestDisk disk = filled_disk(40);
  disk.put(30, std::string(128 * kKiB, '\0'));
  disk.put(31, std::string(5000, '\0'));
  disk.put(32, std::string(10, 'x'));
  const auto tier = open(disk.medium());
  EXPECT_EQ(recovered(*tier).size(), 40u);
  EXPECT_EQ(tier->segment_bytes(), kSegment);
  EXPECT_LE(disk.numbers().size(), 16u);
}

// Each kind of call fails once at each moment, and for good: what was acknowledged comes back, nothing wrong does.
// A medium that takes its time over a new segment holds up those who need that one, and nobody else.
TEST(Tier, OthersGoOnWhileASegmentIsOpened) {
  for (const Call slow : {Call::kCreate, Call::kWrite}) {
    TestDisk disk;
    Faults faults;
    const auto tier = open(test::make_faulty_medium(disk.medium(), faults));
    ASSERT_TRUE(tier->append(Queue::kMain, extent(1), "main"));
    test::Event begun, done, go;
    std::atomic<bool> first{true};
    faults.before(slow, [&] {
      if (!first.exchange(false)) return;
      begun.set();
      EXPECT_TRUE(go.wait());
    });
    std::thread opens([&] { EXPECT_TRUE(tier->append(Queue::kProbation, extent(2), "probation")); });
    EXPECT_TRUE(begun.wait());
    std::thread other([&] {
      EXPECT_TRUE(tier->append(Queue::kMain, extent(3), "main"));
      EXPECT_GT(tier->used_bytes(), 0u);
      EXPECT_TRUE(tier->has_free_segment());
      EXPECT_FALSE(tier->take_victim(Queue::kMain));
      done.set();
    });
    EXPECT_TRUE(done.wait());
    go.set();
    opens.join();
    other.join();
    faults.disarm();
    EXPECT_EQ(recovered(*open(disk.medium())).size(), 3u);
  }
}

// Many at once, each of whom may have to open the next segment: nothing is lost, and no segment is opened for nothing.
TEST(Tier, ManyAppendAtOnce) {
  TestDisk disk;
  const auto tier = open(disk.medium());
  constexpr uint64_t kEach = 60;
  std::vector<std::thread> threads;
  for (uint64_t thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (uint64_t i = 0; i < kEach; ++i) {
        const uint64_t key = thread * kEach + i;
        const Queue queue = i % 2 ? Queue::kMain : Queue::kProbation;
        EXPECT_TRUE(tier->append(queue, extent(key), test::pattern_bytes(2000, key))) << key;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(disk.numbers().size(), (4 * kEach * 2048) / (kSegment - 3 * 4096) + 3);
  const auto all = recovered(*open(disk.medium()));
  ASSERT_EQ(all.size(), 4 * kEach);
  for (const auto& [key, bytes] : all) EXPECT_TRUE(bytes == test::pattern_bytes(2000, key));
}

TEST(TierFaults, AtEveryCall) {
  for (const auto call : {Call::kWrite, Call::kSync, Call::kLoad, Call::kCreate, Call::kOpen}) {
    for (const bool partly : {false, true}) {
      for (const uint64_t times : {uint64_t{1}, UINT64_MAX}) {
        for (uint64_t after = 0; after < 60; ++after) {
          TestDisk disk = filled_disk(3, Queue::kMain);
          Faults faults;
          faults.arm(call, after, times, partly);
          std::map<uint64_t, bool> acknowledged;
          {
            const auto tier = open(test::make_faulty_medium(disk.medium(), faults));
            for (uint64_t i = 10; i < 40; ++i) {
              const auto queue = i % 2 ? Queue::kMain : Queue::kProbation;
              acknowledged[i] = tier->append(queue, extent(i), test::pattern_bytes(10'000, i)).has_value();
            }
          }
          const auto found = recovered(*open(disk.medium()));
          for (const auto& [key, bytes] : found) EXPECT_TRUE(bytes == test::pattern_bytes(10'000, key)) << key;
          for (const auto& [key, done] : acknowledged) EXPECT_TRUE(!done || found.contains(key)) << key;
        }
      }
    }
  }
}

TEST(TierFaults, DamagedBytesAreNeverReady) {
  TestDisk disk = filled_disk(1);
  disk.poke(0, format::kDataBegin + 9'999, 1);
  const auto tier = open(disk.medium());
  size_t seen = 0;
  ASSERT_TRUE(tier->visit_recovered([&](const Record&, const Place& place) {
    ++seen;
    EXPECT_FALSE(tier->is_ready(place));
    EXPECT_FALSE(tier->make_ready(place));
    EXPECT_FALSE(tier->is_ready(place));
  }));
  EXPECT_EQ(seen, 1u);
}

TEST(TierMedia, DirectoriesAreLockedAndListed) {
  const test::TemporaryDirectory directory;
  for (const auto medium : {config::Medium::kNvme, config::Medium::kPmem}) {
    {
      auto first = make_medium({medium, directory.path(), 0});
      ASSERT_TRUE(first);
      const auto second = make_medium({medium, directory.path(), 0});
      ASSERT_FALSE(second);
      EXPECT_EQ(second.error().remedy, Remedy::kFixInput);
      const auto tier = open(std::move(first.value()));
      for (uint64_t i = 0; i < 20; ++i)
        ASSERT_TRUE(tier->append(Queue::kProbation, extent(i), test::pattern_bytes(10'000, i)));
      ASSERT_TRUE(tier->append_tombstone({RecordKind::kPathTombstone, {77, 0}, 9, 0}, true));
      ASSERT_TRUE(reclaim(*tier));
    }
    const auto tier = open(make_medium({medium, directory.path(), 0}).value());
    const auto found = recovered(*tier);
    EXPECT_EQ(found.size(), 17u);
    EXPECT_TRUE(found.contains(77));
    for (uint64_t i = 4; i < 20; ++i) EXPECT_TRUE(found.at(i) == test::pattern_bytes(10'000, i));
    while (reclaim(*tier)) {
    }
  }
}

TEST(TierMedia, ForeignFilesKeepTheirBytes) {
  const test::TemporaryDirectory directory;
  const std::string file = directory.path() + "/nezha-segment-000003";
  const std::string bytes = test::pattern_bytes(20'000, 1);
  std::ofstream(file, std::ios::binary) << bytes;
  std::ofstream(directory.path() + "/somebody-elses") << "kept";
  const auto tier = open(make_medium({config::Medium::kNvme, directory.path(), 0}).value());
  ASSERT_EQ(tier->recovery().set_aside.size(), 1u);
  std::ifstream aside(tier->recovery().set_aside.front(), std::ios::binary);
  EXPECT_TRUE(std::string(std::istreambuf_iterator<char>(aside), {}) == bytes);
  EXPECT_FALSE(std::filesystem::exists(file));
  EXPECT_TRUE(std::filesystem::exists(directory.path() + "/somebody-elses"));
}

}  // namespace
}  // namespace nezha::cache
