// Markers of runs: every sequence of runs with and without each tier, a death between every two writes, every byte of a
// marker damaged, directories from before there were markers; and the store with them, where bytes that were dropped in
// a run without their tier would otherwise come back.
#include "cache/tier/run_marker.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "cache/tier/format.h"
#include "test/support/faulty_medium.h"
#include "test/support/scripted_origin.h"
#include "test/support/store_box.h"
#include "test/support/temporary_directory.h"

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

// Three tiers, A to C, of which each holds something once it took part in a run.
class Tiers {
 public:
  // A run of these tiers, in this order. The ones that kept what they held, in alphabetical order. `writes`: it dies
  // when so many markers were written.
  std::string run(const std::string& names, uint64_t writes = UINT64_MAX) {
    Faults faults;
    if (writes != UINT64_MAX) faults.arm(Call::kMark, writes, UINT64_MAX);
    std::vector<std::unique_ptr<Medium>> media;
    std::vector<Medium*> borrowed;
    std::vector<size_t> all;
    for (const char name : names) {
      media.push_back(make_faulty_medium(disk(name).medium(), faults));
      borrowed.push_back(media.back().get());
      all.push_back(all.size());
    }
    RunMarkers markers(borrowed, [&] { return ++last_id_; });
    std::set<char> kept;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!markers.distrust(i).empty()) holds_.erase(names[i]);
      if (holds_.contains(names[i])) kept.insert(names[i]);
    }
    died_ = markers.begin(all).has_value();
    if (!died_) holds_.insert(names.begin(), names.end());
    return {kept.begin(), kept.end()};
  }
  bool died() const { return died_; }
  void empty(char name) {
    disk(name) = TestDisk();
    holds_.erase(name);
  }
  bool holds(char name) const { return holds_.contains(name); }
  void hold(char name) { holds_.insert(name); }  // from before there were markers
  TestDisk& disk(char name) { return disks_.at(static_cast<size_t>(name - 'A')); }
  std::vector<std::string> distrust(const std::string& names) {
    std::vector<std::unique_ptr<Medium>> media;
    std::vector<Medium*> borrowed;
    for (const char name : names) {
      media.push_back(disk(name).medium());
      borrowed.push_back(media.back().get());
    }
    const RunMarkers markers(borrowed, [&] { return ++last_id_; });
    std::vector<std::string> out;
    for (size_t i = 0; i < names.size(); ++i) out.push_back(markers.distrust(i));
    return out;
  }

 private:
  std::array<TestDisk, 3> disks_;
  std::set<char> holds_;
  bool died_ = false;
  uint64_t last_id_ = 0;
};

struct Sequence {
  std::vector<std::string> runs;  // in small letters: emptied by hand
  std::string last;
  std::string kept;
};

TEST(RunMarkers, WhoMissedARunIsNotBelieved) {
  const Sequence kSequences[] = {
      {{"AB"}, "AB", "AB"},
      {{"AB"}, "BA", "AB"},  // the order does not matter
      {{"AB"}, "B", "B"},
      {{"AB", "A"}, "AB", "A"},
      {{"AB", "B"}, "AB", "B"},
      {{"AB", "B", "B", "B"}, "BA", "B"},
      {{"AB", "A", "AB"}, "AB", "AB"},  // part of it again
      {{"AB", "A", "B"}, "AB", ""},     // each was left out of a run of the other
      {{"AB", "A", "B", "AB"}, "AB", "AB"},
      {{"A", "B"}, "AB", ""},
      {{"A"}, "AB", "A"},  // a fresh one
      {{"A", "AB"}, "AB", "AB"},
      {{"AB", "b"}, "AB", "A"},
      {{"AB", "a"}, "AB", "B"},
      {{"AB", "A", "b"}, "AB", "A"},
      {{"AB", "b", "A"}, "AB", "A"},
      {{"ABC", "AB"}, "ABC", "AB"},
      {{"ABC", "AB", "A"}, "ABC", "A"},
      {{"ABC", "AB", "A"}, "CB", "B"},
      {{"ABC", "AB", "C"}, "ABC", ""},
      {{"ABC", "A", "BC"}, "BC", "BC"},
      {{"ABC", "A", "BC"}, "ABC", ""},
      {{"ABC", "A", "AB"}, "ABC", "AB"},
  };
  for (const auto& sequence : kSequences) {
    Tiers tiers;
    std::string text;
    for (const std::string& run : sequence.runs) {
      text += run + " ";
      if (run[0] >= 'a')
        tiers.empty(static_cast<char>(run[0] - 'a' + 'A'));
      else
        tiers.run(run);
    }
    EXPECT_EQ(tiers.run(sequence.last), sequence.kept) << text << sequence.last;
  }
}

// Random sequences with deaths against what is known of each tier: its last run, and the runs that it can know of. One
// that was emptied in a run that died may or may not have been told: from then on less may be kept, but never more.
TEST(RunMarkers, RandomSequences) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    Tiers tiers;
    std::map<char, std::set<int>> known, last_run;
    bool exact = true;
    std::string text;
    for (int run = 0; run < 15; ++run) {
      std::string names;
      for (const char name : {'A', 'B', 'C'}) {
        if (random() % 3 != 0) names += name;
      }
      if (names.empty()) continue;
      const uint64_t writes = random() % 3 ? UINT64_MAX : random() % (2 * names.size());
      std::set<int> last, all;
      for (const char name : names) {
        last.insert(last_run[name].begin(), last_run[name].end());
        all.insert(known[name].begin(), known[name].end());
      }
      std::string may_be_kept;
      for (const char name : names) {
        if (tiers.holds(name) && std::includes(known[name].begin(), known[name].end(), last.begin(), last.end()))
          may_be_kept += name;
      }
      text += names + (writes == UINT64_MAX ? " " : std::to_string(writes) + " ");
      const std::string kept = tiers.run(names, writes);
      ASSERT_TRUE(std::includes(may_be_kept.begin(), may_be_kept.end(), kept.begin(), kept.end())) << text << kept;
      ASSERT_TRUE(!exact || kept == may_be_kept) << text << kept;
      exact &= !tiers.died();
      for (const char name : names) {
        if (!tiers.died() || !tiers.holds(name)) known[name] = all;
        if (!tiers.holds(name)) last_run[name].clear();
        if (tiers.died()) continue;
        known[name].insert(run);
        last_run[name] = {run};
      }
    }
  }
}

// Whoever dies between two writes loses nothing, and so again and again; and does not make a tier that is behind pass.
TEST(RunMarkers, DeathBetweenEveryTwoWrites) {
  for (uint64_t first = 0; first < 6; ++first) {
    for (uint64_t second = 0; second < 6; ++second) {
      SCOPED_TRACE(std::to_string(first) + " " + std::to_string(second));
      for (const bool upgrade : {false, true}) {
        Tiers tiers;
        for (const char name : {'A', 'B', 'C'}) tiers.hold(name);
        if (!upgrade) {
          ASSERT_EQ(tiers.run("ABC"), "ABC");
        }
        ASSERT_EQ(tiers.run("ABC", first), "ABC");
        ASSERT_EQ(tiers.run("CBA", second), "ABC");
        ASSERT_EQ(tiers.run("BAC"), "ABC");
      }
      for (const std::string left : {"A", "B", "C", "AB", "BC", "AC"}) {
        Tiers tiers;
        tiers.run("ABC");
        tiers.run("ABC", first);
        ASSERT_EQ(tiers.run(left, second), left);  // of one or two tiers: it may be whole
        ASSERT_EQ(tiers.run(left), left);
        ASSERT_EQ(tiers.run("ABC"), left);
      }
      for (const std::string behind : {"A", "B", "C"}) {
        Tiers tiers;
        tiers.run("ABC");
        const std::string others = behind == "A" ? "BC" : behind == "B" ? "AC" : "AB";
        tiers.run(others);
        ASSERT_EQ(tiers.run("ABC", first), others);
        ASSERT_EQ(tiers.run("CAB", second), others) << "what was emptied has nothing to lose";
        ASSERT_EQ(tiers.run("ABC"), others);
      }
    }
  }
}

// Those of which none is believed are emptied, and are the latest all the same, also when they die over it.
TEST(RunMarkers, DeathAfterAllWereEmptied) {
  for (uint64_t writes = 0; writes < 4; ++writes) {
    Tiers tiers;
    for (const char* names : {"ABC", "A", "B"}) tiers.run(names);
    EXPECT_EQ(tiers.run("AB", writes), "");
    EXPECT_EQ(tiers.run("AC"), "") << writes;
  }
}

TEST(RunMarkers, BeforeThereWereMarkers) {
  Tiers tiers;
  tiers.hold('A');
  tiers.hold('B');
  EXPECT_EQ(tiers.run("AB"), "AB");
  EXPECT_EQ(tiers.run("AB"), "AB");
  Tiers one_later;
  one_later.hold('A');
  one_later.hold('B');
  EXPECT_EQ(one_later.run("A"), "A");
  EXPECT_EQ(one_later.run("AB"), "A");
}

// A tier whose marker says nothing may have been part of any run: then no other one is known not to have missed one.
TEST(RunMarkers, EveryDamagedByteIsSeen) {
  Tiers tiers;
  tiers.run("AB");
  tiers.run("A");
  tiers.run("AB");
  const std::string good = *tiers.disk('B').marker();
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    tiers.disk('B').set_marker(bad);
    for (const std::string& reason : tiers.distrust("AB")) ASSERT_NE(reason, "") << at;
    ASSERT_NE(tiers.distrust("B").front(), "") << at;
    tiers.disk('B').set_marker(good.substr(0, at));
    for (const std::string& reason : tiers.distrust("AB")) ASSERT_NE(reason, "") << at;
  }
  EXPECT_EQ(tiers.distrust("A").front(), "");
  tiers.disk('B').set_marker(good + "x");
  EXPECT_EQ(tiers.run("AB"), "");
  EXPECT_FALSE(tiers.disk('B').marker_aside()) << "it was ours";
  EXPECT_EQ(tiers.run("AB"), "AB");
}

TEST(RunMarkers, OfAnotherVersionIsSetAside) {
  Tiers tiers;
  tiers.run("AB");
  std::string other = *tiers.disk('A').marker();
  other[8] = 2;
  tiers.disk('A').set_marker(other);
  EXPECT_EQ(tiers.run("AB", 0), "");
  EXPECT_EQ(tiers.run("AB"), "");
  EXPECT_EQ(tiers.disk('A').marker_aside(), other);
  EXPECT_EQ(tiers.run("AB"), "AB");
}

TEST(RunMarkers, KnowsManyRuns) {
  Tiers tiers;
  tiers.run("AB");
  for (int i = 0; i < 1010; ++i) tiers.run("A");
  Tiers more = tiers;
  more.disk('A') = tiers.disk('A').copy();
  more.disk('B') = tiers.disk('B').copy();
  EXPECT_EQ(tiers.run("AB"), "A");
  for (int i = 0; i < 20; ++i) more.run("A");
  EXPECT_EQ(more.run("AB"), "") << "it is not known any more whether B was part of a run without A";
  EXPECT_EQ(more.run("AB"), "AB");
}

TEST(RunMarkers, GoldenBytes) {
  Tiers tiers;
  tiers.run("A");     // 1
  tiers.run("A");     // 2
  tiers.run("A", 0);  // dies
  tiers.run("A", 1);
  const std::string bytes = *tiers.disk('A').marker();
  ASSERT_EQ(bytes.size(), 8192u);
  const std::string head("NEZHARUN\1\0\0\0\1\0\0\0\2\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 40);
  EXPECT_EQ(bytes.substr(0, 40), head);
  EXPECT_EQ(bytes.substr(40, 8144), std::string(8144, '\0'));
  uint64_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + 8184, sizeof checksum);
  EXPECT_EQ(checksum, format::data_checksum(std::string_view(bytes).substr(0, 8184)));
}

const CacheKey kKey{"data.example/x", ""};

class RunsOfStore : public testing::Test {
 protected:
  struct Drive {
    TestDisk disk;
    Faults faults;
  };
  std::array<Drive, 2> drives_;
  const std::string body_ = pattern_bytes(20'000, 1);
  static CacheKey key(int i) { return {"data.example/" + std::to_string(i), ""}; }

  std::unique_ptr<StoreBox> open(const std::vector<size_t>& which) {
    std::vector<Store::TierPlan> plans;
    for (const size_t i : which) {
      drives_[i].disk = drives_[i].disk.copy();
      plans.push_back({make_faulty_medium(drives_[i].disk.medium(), drives_[i].faults), (i + 1) * kSize, kSegment});
    }
    return std::make_unique<StoreBox>(std::move(plans));
  }
  // How many there are; some lie in each tier.
  int fill(StoreBox& box) {
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(box.put(key(i), head_of("\"v1\"", body_.size()), body_));
    return 100;
  }
  int found(StoreBox& box) {
    int count = 0;
    for (int i = 0; i < 100; ++i) count += box.find(key(i)) != nullptr;
    return count;
  }
  void invalidate_all(StoreBox& box) {
    for (int i = 0; i < 100; ++i) box.invalidate(key(i).path);
  }
};

TEST_F(RunsOfStore, WhatWasDroppedWithoutATierStaysDropped) {
  fill(*open({0, 1}));
  EXPECT_GT(found(*open({0, 1})), 80) << "both are kept when both are there";
  EXPECT_GT(found(*open({1, 0})), 80);
  {
    const auto box = open({0});
    invalidate_all(*box);
    EXPECT_EQ(found(*box), 0);
    ASSERT_TRUE(box->put(kKey, head_of("\"v2\"", body_.size()), body_));
  }
  const auto box = open({0, 1});
  EXPECT_EQ(found(*box), 0);
  EXPECT_TRUE(box->read(kKey) == body_) << "what the other tier holds is kept";
  EXPECT_EQ(box->store().tier_states()[1].used_bytes, 0u);
}

// A tier that cannot be marked takes no part, and cannot come back with what it held.
TEST_F(RunsOfStore, AMarkerThatCannotBeWritten) {
  for (const size_t bad : {0, 1}) {
    for (const uint64_t after : {0, 1}) {
      for (const bool stays : {false, true}) {
        fill(*open({0, 1}));
        drives_[bad].faults.arm(Call::kMark, after, UINT64_MAX);
        if (stays) drives_[bad].faults.arm(Call::kRemove, 0, UINT64_MAX);
        {
          const auto box = open({0, 1});
          EXPECT_TRUE(box->store().tier_states()[bad].failed);
          EXPECT_FALSE(box->store().tier_states()[1 - bad].failed);
          EXPECT_GT(found(*box), 5) << "what the other one holds";
          invalidate_all(*box);
        }
        drives_[bad].faults.disarm();
        EXPECT_EQ(found(*open({0, 1})), 0) << bad << after << stays;
      }
    }
  }
}

TEST_F(RunsOfStore, ATierThatCannotBeEmptied) {
  fill(*open({0, 1}));
  invalidate_all(*open({0}));
  for (int start = 0; start < 3; ++start) {
    drives_[1].faults.arm(Call::kRemove, static_cast<uint64_t>(start), UINT64_MAX);
    const auto box = open({0, 1});
    EXPECT_EQ(found(*box), 0);
    EXPECT_TRUE(box->store().tier_states()[1].failed);
    drives_[1].faults.disarm();
  }
  const auto box = open({0, 1});
  EXPECT_EQ(found(*box), 0);
  EXPECT_FALSE(box->store().tier_states()[1].failed);
}

TEST_F(RunsOfStore, ADeathAtEveryWriteOfAMarker) {
  for (int death = 0; death < 4; ++death) {
    fill(*open({0, 1}));
    int writes = 0;
    std::array<TestDisk, 2> copies;
    for (auto& drive : drives_) {
      drive.faults.before(Call::kMark, [&] {
        if (writes++ != death) return;
        for (size_t i = 0; i < 2; ++i) copies[i] = drives_[i].disk.copy();
      });
    }
    const int before = found(*open({0, 1}));
    EXPECT_EQ(writes, 4);
    for (size_t i = 0; i < 2; ++i) {
      drives_[i].faults.disarm();
      drives_[i].disk = copies[i];
    }
    EXPECT_EQ(found(*open({0, 1})), before) << death;
  }
}

// On real directories: the marker is no segment, and nothing depends on where a directory is.
TEST(RunDirectories, AreKnownAgainWhereverTheyAre) {
  const test::TemporaryDirectory root;
  const std::string body = pattern_bytes(20'000, 1);
  const auto open = [&](const std::vector<std::string>& names) {
    std::vector<Store::TierPlan> plans;
    for (const std::string& name : names) {
      const auto medium = name[0] == 'p' ? config::Medium::kPmem : config::Medium::kNvme;
      plans.push_back({make_medium({medium, root.path() + "/" + name, 0}).value(), kSize, kSegment});
    }
    return std::make_unique<StoreBox>(std::move(plans));
  };
  const auto key = [](int i) { return CacheKey{"data.example/" + std::to_string(i), ""}; };
  const auto found = [&](StoreBox& box) {
    int count = 0;
    for (int i = 0; i < 70; ++i) count += box.read(key(i)) == body;
    return count;
  };
  int count = 0;
  {
    const auto box = open({"p", "n"});
    for (int i = 0; i < 70; ++i) ASSERT_TRUE(box->put(key(i), head_of("\"v1\"", body.size()), body));
    count = found(*box);
  }
  EXPECT_EQ(found(*open({"p", "n"})), count);
  std::filesystem::rename(root.path() + "/n", root.path() + "/moved");
  EXPECT_EQ(found(*open({"p", "moved"})), count);
  EXPECT_FALSE(std::filesystem::exists(root.path() + "/moved/set-aside"));
  const int in_first = found(*open({"p"}));
  EXPECT_LT(in_first, count);
  EXPECT_EQ(found(*open({"p", "moved"})), in_first);
  std::filesystem::resize_file(root.path() + "/p/nezha-run", 100);
  EXPECT_EQ(found(*open({"p", "moved"})), 0);
}

}  // namespace
}  // namespace nezha::cache
