// The store: publishing, joining, replacing, refreshing, invalidating, dropping, evicting; over one, two and three
// tiers; each again after a restart; and with every byte on the medium damaged in turn.
#include "cache/store/store.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

#include "test/support/event.h"
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

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kSegment = 64 * kKiB;
constexpr uint64_t kSize = 16 * kSegment;
const CacheKey kKey{"data.example/x", ""};
const CacheKey kQuery{"data.example/x", "q=1"};
const CacheKey kOther{"data.example/y", ""};

class StoreTest : public testing::Test {
 protected:
  TestDisk disk_;
  std::unique_ptr<StoreBox> box_ = std::make_unique<StoreBox>(disk_.medium(), kSize, kSegment);
  const std::string body_ = pattern_bytes(30'000, 1);
  const std::string next_ = pattern_bytes(20'000, 2);

  void restart() {
    disk_ = disk_.copy();  // as it was when the process died, not when it ended
    box_ = std::make_unique<StoreBox>(disk_.medium(), kSize, kSegment);
  }
  bool put(const CacheKey& key, const std::string& etag, const std::string& body, int second = 0) {
    return box_->put(key, head_of(etag, body.size(), second), body);
  }
  bool put_part(const std::string& etag, uint64_t begin, uint64_t end, int second = 0) {
    return box_->put(kKey, head_of(etag, body_.size(), second), std::string_view(body_).substr(begin, end - begin),
                     begin, true);
  }
  std::string etag_of(const CacheKey& key) {
    const auto head = box_->find(key);
    return head ? head->etag->text : "";
  }
};

TEST_F(StoreTest, WhatIsPublishedIsThereAlsoAfterARestart) {
  ASSERT_TRUE(put(kKey, "\"v1\"", body_));
  ASSERT_TRUE(put(kOther, "\"e\"", ""));
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(box_->read(kKey) == body_);
    EXPECT_TRUE(box_->read(kOther) == "");
    EXPECT_EQ(box_->find(kQuery), nullptr);
    restart();
  }
}

TEST_F(StoreTest, PartsOfOneVersionJoin) {
  ASSERT_TRUE(put_part("\"v1\"", 20'000, 30'000));
  EXPECT_FALSE(box_->read(kKey));
  ASSERT_TRUE(put_part("\"v1\"", 0, 5'000));
  restart();
  ASSERT_TRUE(put_part("\"v1\"", 4'000, 21'000));
  EXPECT_TRUE(box_->read(kKey) == body_);
  EXPECT_EQ(box_->store().generation_count(), 1u);
  restart();
  EXPECT_TRUE(box_->read(kKey) == body_);
}

TEST_F(StoreTest, AnotherVersionReplaces) {
  ASSERT_TRUE(put(kKey, "\"v1\"", body_, 1));
  ASSERT_TRUE(put(kKey, "\"v2\"", next_, 2));
  EXPECT_TRUE(box_->read(kKey) == next_);
  EXPECT_FALSE(put(kKey, "\"v1\"", body_, 1)) << "an older answer that took longer";
  ASSERT_TRUE(put_part("\"v3\"", 0, 100, 3));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(etag_of(kKey), "\"v3\"");
    EXPECT_FALSE(box_->read(kKey)) << "no bytes of another version";
    restart();
  }
  box_->drop(kKey, box_->find(kKey));
  EXPECT_EQ(etag_of(kKey), "") << "no older one comes up";
  restart();
  EXPECT_EQ(etag_of(kKey), "");
}

TEST_F(StoreTest, InvalidationHoldsAfterARestart) {
  ASSERT_TRUE(put(kKey, "\"v1\"", body_));
  ASSERT_TRUE(put(kQuery, "\"q\"", next_));
  ASSERT_TRUE(put(kOther, "\"o\"", next_));
  auto doomed = box_->store().begin_fill(kKey);
  box_->invalidate(kKey.path);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(etag_of(kKey) + etag_of(kQuery), "");
    EXPECT_TRUE(box_->read(kOther) == next_);
    if (i == 0) {
      EXPECT_FALSE(box_->store().open_generation(*doomed, kKey, head_of("\"v1\"", 0), Queue::kMain, false));
      doomed.reset();
    }
    if (i < 2) restart();
  }
  ASSERT_TRUE(put(kKey, "\"v2\"", next_));
  restart();
  EXPECT_TRUE(box_->read(kKey) == next_);
}

TEST_F(StoreTest, PurgesHoldAfterARestart) {
  const auto path = [](int i) { return "data.example/" + std::string(i % 3 ? "a/" : "b/") + std::to_string(i); };
  for (int i = 0; i < 18; ++i) ASSERT_TRUE(put({path(i), ""}, "\"v\"", "small"));
  ASSERT_TRUE(put({path(1), "q=1"}, "\"q\"", "small"));
  restart();  // no head is decoded
  const auto under_a = [](const std::string& each) { return each.starts_with("data.example/a/"); };
  EXPECT_EQ(box_->store().purge_if(under_a), 12u);
  EXPECT_EQ(box_->store().purge({path(0), path(3), path(1), "data.example/none"}), 2u);
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_EQ(etag_of({path(1), "q=1"}), "");
    for (int i = 0; i < 18; ++i) EXPECT_EQ(etag_of({path(i), ""}), i % 3 || i == 0 || i == 3 ? "" : "\"v\"") << i;
    restart();
  }
}

TEST_F(StoreTest, DropHoldsAfterARestart) {
  ASSERT_TRUE(put(kKey, "\"v1\"", body_));
  ASSERT_TRUE(put(kQuery, "\"q\"", next_));
  box_->drop(kKey, box_->find(kKey));
  restart();
  EXPECT_EQ(etag_of(kKey), "");
  EXPECT_TRUE(box_->read(kQuery) == next_);
}

TEST_F(StoreTest, RefreshHoldsAfterARestart) {
  ASSERT_TRUE(put(kKey, "\"v1\"", body_));
  for (int i = 0; i < 5; ++i) {
    const auto before = box_->find(kKey);
    auto after = std::make_shared<StoredHead>(*before);
    after->fields.set("X-Seen", std::to_string(i));
    complete(*after);
    ASSERT_TRUE(box_->refresh(kKey, before, after));
    restart();
    ASSERT_EQ(box_->find(kKey)->fields.find("X-Seen"), std::to_string(i));
    ASSERT_TRUE(box_->read(kKey) == body_);
  }
}

// Whatever is reclaimed, nothing that was invalidated or replaced comes back; also when only its head was left.
TEST_F(StoreTest, EvictionForgetsAltogether) {
  const uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    const CacheKey key{"data.example/" + std::to_string(round), ""};
    const std::string old = "\"old-" + std::to_string(round) + "\"";
    ASSERT_TRUE(box_->put(key, head_of(old, body_.size()), body_, 0, round % 2));
    for (uint64_t i = random() % 30; i > 0; --i) {
      const CacheKey filler{"data.example/f" + std::to_string(random()), ""};
      ASSERT_TRUE(put(filler, "\"f\"", pattern_bytes(random() % 30'000, i)));
    }
    box_->invalidate(key.path);
    for (uint64_t i = random() % 30; i > 0; --i)
      (void)put({"data.example/f" + std::to_string(random()), ""}, "\"f\"", pattern_bytes(random() % 30'000, i));
    restart();
    for (int past = 0; past <= round; ++past) EXPECT_EQ(etag_of({"data.example/" + std::to_string(past), ""}), "");
  }
  EXPECT_LE(box_->store().fill_tier().used_bytes(), kSize);
}

// One flipped bit anywhere on the medium, seen by a new process: a miss, or the right bytes.
TEST_F(StoreTest, AFlippedBitIsAMiss) {
  ASSERT_TRUE(put(kKey, "\"v1\"", body_, 1));
  ASSERT_TRUE(put(kKey, "\"v2\"", next_, 2));
  ASSERT_TRUE(put(kOther, "\"o\"", body_));
  box_->invalidate(kOther.path);
  const TestDisk whole = disk_.copy();
  box_.reset();
  for (const uint32_t number : whole.numbers()) {
    const std::string bytes = whole.read(number);
    for (uint64_t at = 0; at < bytes.size(); ++at) {
      // Everything around headers, counts and descriptors; data here and there.
      const bool data = at >= 128 && at < bytes.size() - 4096;
      if (data && at % 301 != 0) continue;
      disk_ = whole.copy();
      disk_.poke(number, at, static_cast<char>(1 << at % 8));
      StoreBox box(disk_.medium(), kSize, kSegment);
      const auto head = box.find(kKey);
      if (head) {
        ASSERT_EQ(head->etag->text, "\"v2\"") << number << ":" << at;
        const auto body = box.read(kKey, head, {0, *head->total_bytes});
        ASSERT_TRUE(!body || *body == next_) << number << ":" << at;
      }
      ASSERT_EQ(box.find(kOther), nullptr) << number << ":" << at;
    }
  }
}

// Any call of the medium fails, once or for good: fills fail, and what was acknowledged holds.
TEST_F(StoreTest, FaultsAtEveryCall) {
  for (const auto call : {Call::kWrite, Call::kSync, Call::kLoad, Call::kCreate}) {
    for (const auto times : {uint64_t{1}, uint64_t{3}, UINT64_MAX}) {
      for (uint64_t after = 0; after < 40; ++after) {
        SCOPED_TRACE(std::to_string(static_cast<int>(call)) + " " + std::to_string(times) + " " +
                     std::to_string(after));
        disk_ = TestDisk();
        Faults faults;
        {
          StoreBox box(test::make_faulty_medium(disk_.medium(), faults), kSize, kSegment);
          ASSERT_TRUE(box.put(kKey, head_of("\"v1\"", body_.size(), 1), body_));
          ASSERT_TRUE(box.put(kOther, head_of("\"o\"", body_.size(), 1), body_));
          faults.arm(call, after, times, after % 2);
          (void)box.put(kQuery, head_of("\"q1\"", body_.size(), 1), body_);
          if (box.put(kKey, head_of("\"v2\"", next_.size(), 2), next_)) {
            const auto now = box.read(kKey);
            EXPECT_TRUE(!now || *now == next_);
          }
          box.invalidate(kOther.path);
          EXPECT_EQ(box.find(kOther), nullptr);
        }
        StoreBox box(disk_.medium(), kSize, kSegment);
        EXPECT_EQ(box.find(kOther), nullptr) << "acknowledged";
        const auto body = box.read(kKey);
        EXPECT_TRUE(!body || *body == next_ || *body == body_);
        const auto other = box.read(kQuery);
        EXPECT_TRUE(!other || *other == body_);
      }
    }
  }
}

// The descriptors of a segment become unreadable while the index points there: it is not written over.
TEST_F(StoreTest, ASegmentWhoseDescriptorsAreDamagedIsNotReused) {
  ASSERT_TRUE(put(kKey, "\"v1\"", body_));
  const uint32_t slots = 16;
  for (uint32_t slot = 0; slot < slots; ++slot) disk_.poke(0, format::slot_offset(kSegment, slot), 1);
  for (int i = 0; i < 200; ++i) {
    (void)put({"data.example/f" + std::to_string(i), ""}, "\"f\"", pattern_bytes(30'000, static_cast<uint64_t>(i)));
    const auto body = box_->read(kKey);
    ASSERT_TRUE(!body || *body == body_) << i;
  }
  EXPECT_FALSE(box_->store().tier_states().front().failed);
}

TEST_F(StoreTest, DamagedHeadsAreDropped) {
  ASSERT_TRUE(put(kKey, "\"v1\"", body_));
  box_.reset();
  const std::string bytes = disk_.read(0);
  disk_.poke(0, bytes.find("\"v1\""), 1);
  box_ = std::make_unique<StoreBox>(disk_.medium(), kSize, kSegment);
  EXPECT_EQ(box_->find(kKey), nullptr);
  EXPECT_EQ(box_->store().generation_count(), 0u);
}

// Nothing may be held in place while it is written down that damaged heads are gone: room must be made for that.
TEST_F(StoreTest, AScanThatFindsDamagedHeadsKeepsTheTier) {
  std::vector<CacheKey> keys;  // of one shard, in all segments
  for (int i = 0; keys.size() < 2500; ++i) {
    CacheKey key{"data.example/" + std::to_string(i), ""};
    if (hash_of(key).path % Index::kShards == 0) keys.push_back(std::move(key));
  }
  for (const auto& key : keys) ASSERT_TRUE(put(key, "\"damaged-tag\"", std::string(100, 'x')));
  box_.reset();
  size_t heads = 0;
  for (const uint32_t number : disk_.numbers()) {
    const std::string bytes = disk_.read(number);
    for (size_t at = bytes.find("damaged-tag"); at != std::string::npos; at = bytes.find("damaged-tag", at + 1)) {
      if (++heads % 3 == 0) disk_.poke(number, at, 1);
    }
  }
  box_ = std::make_unique<StoreBox>(disk_.medium(), kSize, kSegment);
  const size_t before = box_->store().generation_count();
  ASSERT_GT(before, 500u);
  EXPECT_EQ(box_->store().purge_if([](const std::string&) { return false; }), 0u);
  EXPECT_LT(box_->store().generation_count(), before) << "damaged ones are gone";
  EXPECT_FALSE(box_->store().tier_states().front().failed);
}

struct Layout {
  bool memory = false;
  int durable = 1;
};
void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.memory << "+" << layout.durable; }

class StoreTiers : public testing::TestWithParam<Layout> {
 protected:
  std::vector<TestDisk> disks_ = std::vector<TestDisk>(static_cast<size_t>(GetParam().durable));
  std::unique_ptr<StoreBox> box_ = open();

  std::unique_ptr<StoreBox> open() {
    std::vector<Store::TierPlan> plans;
    if (GetParam().memory) plans.push_back({make_medium({config::Medium::kMemory, "", 0}).value(), kSize, kSegment});
    for (size_t i = 0; i < disks_.size(); ++i) plans.push_back({disks_[i].medium(), (i + 1) * kSize, kSegment});
    return std::make_unique<StoreBox>(std::move(plans));
  }
  std::string body(int i) { return pattern_bytes(20'000, static_cast<uint64_t>(i)); }
  CacheKey key(int i) { return {"data.example/" + std::to_string(i), ""}; }
  // As a client's hit: read and noted.
  bool hit(int i) {
    const auto head = box_->find(key(i));
    if (!head) return false;
    const auto pinned = box_->store().pin(key(i), head, {0, *head->total_bytes});
    if (!pinned) return false;
    const auto got = box_->read(key(i), head, {0, *head->total_bytes});
    EXPECT_TRUE(!got || *got == body(i)) << i;
    box_->store().note_hit(key(i), head, *pinned);
    return true;
  }
};

// More than the first tier holds: what it gives up is found in the next one, what is read again moves up, and nothing
// that was dropped comes back from any of them.
TEST_P(StoreTiers, DemoteAndPromote) {
  const int count = GetParam().durable * 50;
  for (int i = 0; i < count; ++i) ASSERT_TRUE(box_->put(key(i), head_of("\"v\"", 20'000), body(i)));
  int found = 0;
  for (int i = 0; i < count; ++i) found += hit(i);
  if (GetParam().durable > 1) {
    EXPECT_GT(found, 90) << "more than the first durable tier holds";
  }
  if (GetParam().memory || GetParam().durable > 1) {
    const int last = count - 1;
    const auto in_first = [&] {
      for (int read = 0; read < 3; ++read) hit(last);
      const auto head = box_->find(key(last));
      const auto pinned = box_->store().pin(key(last), head, {0, *head->total_bytes});
      return pinned && pinned->pieces.front().place->tier() == 0;
    };
    EXPECT_TRUE(test::eventually(in_first));
  }
  for (int i = 0; i < count; i += 3) box_->invalidate(key(i).path);
  std::vector<TestDisk> copies;
  for (const auto& disk : disks_) copies.push_back(disk.copy());
  disks_ = copies;
  box_ = open();
  int again = 0;
  for (int i = 0; i < count; ++i) {
    if (i % 3 == 0)
      EXPECT_EQ(box_->find(key(i)), nullptr) << i;
    else
      again += hit(i);
  }
  EXPECT_GT(again, found / 2);
  for (const auto& tier : box_->store().tier_states()) EXPECT_LE(tier.used_bytes, tier.size_bytes) << tier.name;
}

// A device without room for its tier's first segments, or for all of them, costs hits and nothing else.
TEST(StoreFullDevice, IsTriedAgainAndHoldsNobodyUp) {
  for (const uint64_t segments : {0, 1, 2, 3, 6}) {
    SCOPED_TRACE(segments);
    TestDisk disk;
    Faults faults;
    faults.arm(Call::kCreate, segments, UINT64_MAX);
    StoreBox box(make_faulty_medium(disk.medium(), faults), kSize, kSegment);
    size_t stored = 0;
    for (int i = 0; i < 100; ++i) {
      const CacheKey key{"data.example/" + std::to_string(i % 10), ""};
      stored += box.put(key, head_of("\"v\"", 9000), pattern_bytes(9000, 1));
      box.invalidate("data.example/" + std::to_string(i % 3));
    }
    EXPECT_FALSE(box.store().tier_states().front().failed);
    if (segments == 6) {
      EXPECT_GT(stored, 0u);
    }
    faults.disarm();
    box.clock().advance(std::chrono::minutes{2});
    EXPECT_TRUE(box.put(kKey, head_of("\"v\"", 9000), pattern_bytes(9000, 1)));
    EXPECT_TRUE(box.read(kKey) == pattern_bytes(9000, 1));
  }
}

// A head in force that goes with its segment leaves older ones of its object elsewhere: whenever the process dies
// meanwhile, none of them may be in force again.
TEST(StoreDeaths, OlderHeadsStayOutOfForceWhileASegmentIsGivenUp) {
  constexpr size_t kObjects = 200, kBusy = 3;
  const auto key = [](size_t i) { return CacheKey{"data.example/" + std::to_string(i), ""}; };
  const auto revision = [](const StoredHead& head) { return std::string(head.fields.find("X-Revision").value_or("")); };
  std::map<size_t, std::string> in_force;
  size_t looks = 0, old = 0;
  TestDisk disk;
  Faults faults;
  StoreBox box(make_faulty_medium(disk.medium(), faults), kSize, kSegment);
  const auto look = [&] {  // as if it died now
    const TestDisk copy = disk.copy();
    StoreBox after(copy.medium(), kSize, kSegment);
    for (const auto& [object, newest] : in_force) {
      const auto head = after.find(key(object));
      if (head) old += revision(*head) < newest;
    }
    ++looks;
  };
  std::mt19937_64 random(1);
  for (int step = 0; step < 8000; ++step) {
    // Most are confirmed so rarely that their heads grow old in force.
    const size_t object = random() % (random() % 5 == 0 ? kObjects : kBusy);
    const auto head = box.find(key(object));
    if (!head) {
      in_force.erase(object);
      (void)box.put(key(object), head_of("\"v\"", 300), pattern_bytes(300, object));
      continue;
    }
    auto next = std::make_shared<StoredHead>(*head);
    next->fields.set("X-Revision", std::to_string(100'000 + step));
    next->fields.set("X-Padding", std::string(1500, 'x'));
    complete(*next);
    faults.before(Call::kSync, look);  // those of a segment that is wiped, among others
    const auto refreshed = box.refresh(key(object), head, next);
    faults.before(Call::kSync, nullptr);
    if (refreshed) in_force[object] = revision(*refreshed);
  }
  EXPECT_GT(looks, 20u);
  EXPECT_EQ(old, 0u);
}

INSTANTIATE_TEST_SUITE_P(Layouts, StoreTiers,
                         testing::Values(Layout{false, 1}, Layout{true, 1}, Layout{false, 2}, Layout{true, 2},
                                         Layout{false, 3}));

}  // namespace
}  // namespace nezha::cache
