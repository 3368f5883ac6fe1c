// The index: generations and their extents, look-ups among variants and heads that are not decoded, invalidation with
// fills under way, and what reclaiming is told.
#include "cache/index/index.h"

#include <gtest/gtest.h>

#include <set>

#include "cache/index/head_record.h"
#include "test/support/manual_clock.h"
#include "test/support/scripted_origin.h"
#include "test/support/store_box.h"

namespace nezha::cache {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;

class IndexTest : public testing::Test {
 protected:
  const test::ManualClock clock_;
  std::unique_ptr<Tier> make_tier(uint8_t id) {
    auto medium = make_medium({config::Medium::kMemory, "", 0});
    return std::move(Tier::open(std::move(medium.value()), {id, 64 * kMiB, 4 * kMiB}, clock_).value());
  }
  std::unique_ptr<Tier> fast_ = make_tier(0);
  std::unique_ptr<Tier> tier_ = make_tier(1);
  Index index_{{fast_.get(), tier_.get()}, 64 * kMiB};
  const CacheKey key_{"data.example/x", ""};
  const KeyHash hash_ = hash_of(key_);
  const std::string body_ = test::pattern_bytes(4 * kMiB, 1);
  uint64_t generation_ = 0;

  StoredHeadPtr head(uint64_t generation, const std::string& etag = "\"v1\"", const std::string& accept = "") {
    auto out = test::head_of(etag, body_.size());
    out->key = key_;
    out->generation = generation;
    if (!accept.empty()) out->selecting.emplace_back("accept", accept);
    return out;
  }
  Place write_head(const StoredHead& head) {
    const Record record{RecordKind::kHead, hash_, head.generation, 0};
    return tier_->append(Queue::kProbation, record, encode_head(head)).value().place;
  }
  // A generation with no bytes yet.
  StoredHeadPtr insert(const std::string& etag = "\"v1\"", const std::string& accept = "") {
    const auto ticket = index_.begin_fill(hash_, "");
    const auto made = head(ticket->generation, etag, accept);
    EXPECT_TRUE(index_.insert(*ticket, write_head(*made), made));
    return made;
  }
  Extent extent(Tier& tier, uint64_t begin, uint64_t end) {
    const Record record{RecordKind::kExtent, hash_, 1, begin};
    return {begin,
            tier.append(Queue::kProbation, record, std::string_view(body_).substr(begin, end - begin)).value().place};
  }
  bool add(uint64_t generation, uint64_t begin, uint64_t end) {
    return index_.add_copy(hash_, generation, extent(*tier_, begin, end));
  }
  std::string read(uint64_t generation, uint64_t begin, uint64_t end) {
    const auto body = index_.pin(hash_, generation, {begin, end});
    if (!body) return "missing";
    std::string out;
    for (const auto& piece : body->pieces) out += piece.bytes;
    return out;
  }
  std::string wanted(uint64_t begin, uint64_t end) const { return body_.substr(begin, end - begin); }
  Index::Found find(const http::Fields& request = {}, const std::vector<StoredHeadPtr>& decoded = {}) {
    return index_.find(hash_, key_, request, true, decoded);
  }
};

TEST_F(IndexTest, UnionOfExtents) {
  const uint64_t g = insert()->generation;
  ASSERT_TRUE(add(g, 1000, 5000));
  EXPECT_TRUE(read(g, 1000, 5000) == wanted(1000, 5000));
  EXPECT_TRUE(read(g, 2000, 2001) == wanted(2000, 2001));
  EXPECT_EQ(read(g, 999, 1001), "missing");
  EXPECT_EQ(read(g, 4999, 5001), "missing");
  ASSERT_TRUE(add(g, 4000, 9000));  // overlaps
  ASSERT_TRUE(add(g, 0, 1000));     // touches
  ASSERT_TRUE(add(g, 2000, 3000));  // inside
  EXPECT_TRUE(read(g, 0, 9000) == wanted(0, 9000));
  EXPECT_EQ(read(g, 0, 9001), "missing");
  EXPECT_EQ(read(g, 5, 5), "");
}

TEST_F(IndexTest, ManyScatteredExtentsInAnyOrder) {
  const uint64_t g = insert()->generation;
  std::vector<uint64_t> begins;
  for (uint64_t at = 0; at < body_.size(); at += 50'000) begins.push_back(at);
  for (size_t i = 0; i < begins.size(); ++i) {
    const uint64_t at = begins[i * 37 % begins.size()];
    ASSERT_TRUE(add(g, at, std::min<uint64_t>(at + 50'000 + i % 7 * 1000, body_.size())));
  }
  EXPECT_TRUE(read(g, 0, body_.size()) == body_);
  for (uint64_t at = 0; at + 100'000 < body_.size(); at += 77'777)
    EXPECT_TRUE(read(g, at, at + 99'999) == wanted(at, at + 99'999));
}

TEST_F(IndexTest, TheFasterTierServes) {
  const uint64_t g = insert()->generation;
  ASSERT_TRUE(add(g, 0, 1000));
  ASSERT_TRUE(index_.add_copy(hash_, g, extent(*fast_, 0, 1000)));
  const auto body = index_.pin(hash_, g, {10, 20});
  ASSERT_TRUE(body && body->pieces.size() == 1);
  EXPECT_EQ(body->pieces[0].place->tier(), 0);
  EXPECT_EQ(body->pieces[0].bytes, wanted(10, 20));
}

TEST_F(IndexTest, InvalidationDoomsFillsUnderWay) {
  const auto before = index_.begin_fill(hash_, "");
  const auto other = index_.begin_fill(hash_of({"data.example/other", ""}), "data.example/other");
  const uint64_t g = insert()->generation;
  EXPECT_TRUE(index_.invalidate(hash_.path));
  EXPECT_EQ(find().head, nullptr);
  EXPECT_EQ(index_.generation_count(), 0u);
  EXPECT_EQ(index_.head_bytes(), 0u) << "all of it is accounted for";
  EXPECT_TRUE(before->doomed);
  EXPECT_FALSE(other->doomed);
  const auto late = head(before->generation);
  EXPECT_FALSE(index_.insert(*before, write_head(*late), late));
  EXPECT_FALSE(add(g, 0, 10));
  EXPECT_NE(insert(), nullptr) << "a fill that began behind it";
}

TEST_F(IndexTest, InvalidationReachesEveryQueryAndVariantAndNoOtherPath) {
  insert("\"a\"", "gzip");
  insert("\"b\"", "br");
  const CacheKey query{key_.path, "a=b"}, other{"data.example/y", ""};
  for (const auto& key : {query, other}) {
    const auto ticket = index_.begin_fill(hash_of(key), key.path);
    auto made = test::head_of("\"q\"", 1);
    made->key = key;
    made->generation = ticket->generation;
    ASSERT_TRUE(index_.insert(*ticket, write_head(*made), made));
  }
  EXPECT_TRUE(index_.invalidate(hash_.path));
  EXPECT_EQ(index_.find(hash_of(query), query, {}, false, {}).head, nullptr);
  EXPECT_NE(index_.find(hash_of(other), other, {}, false, {}).head, nullptr);
  EXPECT_EQ(index_.generation_count(), 1u);
  EXPECT_TRUE(index_.invalidate(hash_.path)) << "the first tombstone may not be on the medium yet";
  index_.forbidden(hash_);
  index_.forbidden(hash_);
  EXPECT_FALSE(index_.invalidate(hash_.path)) << "nothing is left";
}

TEST_F(IndexTest, VariantsAreSelectedByTheRequest) {
  insert("\"gz\"", "gzip");
  insert("\"br\"", "br");
  http::Fields request;
  request.add("Accept", "gzip");
  EXPECT_EQ(find(request).head->etag->text, "\"gz\"");
  request.set("Accept", "br");
  EXPECT_EQ(find(request).head->etag->text, "\"br\"");
  request.set("Accept", "other");
  EXPECT_EQ(find(request).head, nullptr);
}

TEST_F(IndexTest, ACollidingKeyIsNotTaken) {
  insert();
  EXPECT_EQ(index_.find(hash_, {"data.example/z", ""}, {}, false, {}).head, nullptr);
}

// However small the budget, a look-up ends: what was decoded for it counts.
TEST_F(IndexTest, LooksUpAmongHeadsThatDoNotStay) {
  Index small({fast_.get(), tier_.get()}, 64);  // a byte per shard
  for (const std::string etag : {"\"gz\"", "\"br\"", "\"id\""}) {
    const auto ticket = small.begin_fill(hash_, "");
    const auto made = head(ticket->generation, etag, etag);
    ASSERT_TRUE(small.insert(*ticket, write_head(*made), made));
  }
  http::Fields request;
  request.add("Accept", "\"gz\"");
  std::vector<StoredHeadPtr> decoded;
  Index::Found found;
  for (int i = 0; i < 4 && !found.head; ++i) {
    found = small.find(hash_, key_, request, false, decoded);
    if (!found.undecoded) continue;
    decoded.push_back(decode_head(found.record.bytes, found.undecoded).value());
    small.set_decoded(hash_, *found.record.place, decoded.back());
  }
  ASSERT_TRUE(found.head);
  EXPECT_EQ(found.head->etag->text, "\"gz\"");
  EXPECT_LE(small.head_bytes(), 4 * kKiB);
}

TEST_F(IndexTest, WhatReclaimingIsTold) {
  const auto ticket = index_.begin_fill(hash_, "");
  const auto made = head(ticket->generation);
  const Place head_place = write_head(*made);
  ASSERT_TRUE(index_.insert(*ticket, head_place, made));
  const Extent first = extent(*tier_, 0, 100), second = extent(*tier_, 100, 200);
  ASSERT_TRUE(index_.add_extents(*ticket, made->generation, {first, second}));
  const Record head_record{RecordKind::kHead, hash_, made->generation, 0};
  const Record first_record{RecordKind::kExtent, hash_, made->generation, 0};
  const Record second_record{RecordKind::kExtent, hash_, made->generation, 100};
  EXPECT_TRUE(index_.liveness(head_record, head_place).live);
  EXPECT_TRUE(index_.liveness(first_record, first.place).live);
  Place elsewhere = first.place;
  elsewhere.segment += 1;
  EXPECT_FALSE(index_.liveness(first_record, elsewhere).live);

  const Extent moved = extent(*tier_, 0, 100);
  EXPECT_TRUE(index_.move(first_record, first.place, moved.place));
  EXPECT_FALSE(index_.liveness(first_record, first.place).live);
  EXPECT_TRUE(read(made->generation, 0, 200) == wanted(0, 200));

  EXPECT_FALSE(index_.forget(first_record, first.place, true).dropped) << "it lies there no longer";
  EXPECT_FALSE(index_.forget(first_record, moved.place, true).dropped);
  EXPECT_EQ(read(made->generation, 0, 100), "missing");
  EXPECT_TRUE(read(made->generation, 100, 200) == wanted(100, 200));
  EXPECT_TRUE(index_.forget(second_record, second.place, true).dropped) << "without bytes it is nothing";
  EXPECT_EQ(index_.generation_count(), 0u);
  EXPECT_FALSE(index_.move(second_record, second.place, moved.place));
}

// A head that stays on the medium without being known would come back with a restart.
TEST_F(IndexTest, HeadsThatAreLeftBehindAreTold) {
  const auto made = insert();
  const Extent only = extent(*tier_, 0, 100);
  ASSERT_TRUE(index_.add_copy(hash_, made->generation, only));
  const Record record{RecordKind::kExtent, hash_, made->generation, 0};
  EXPECT_FALSE(index_.liveness(record, only.place).heads_left) << "the head goes with its segment";
  const Place next = write_head(*made);
  ASSERT_TRUE(index_.replace_head(hash_, made, &next));
  EXPECT_TRUE(index_.liveness(record, only.place).heads_left) << "the first one stays";
  const auto forgotten = index_.forget(record, only.place, true);
  EXPECT_TRUE(forgotten.dropped && forgotten.heads_left);
}

TEST_F(IndexTest, RecoversWhatIsNotForbidden) {
  const KeyHash other = hash_of({"data.example/y", ""});
  const auto heads = [&](uint64_t g, const KeyHash& hash) {
    index_.recover({RecordKind::kHead, hash, g, 0}, write_head(*head(g)));
    index_.recover({RecordKind::kExtent, hash, g, 0}, extent(*tier_, 0, 10).place);
  };
  index_.recover_tombstone({RecordKind::kPathTombstone, hash_, 5, 0});
  index_.recover_tombstone({RecordKind::kGenerationTombstone, other, 8, 0});
  for (const uint64_t g : {4, 5, 6}) heads(g, hash_);
  for (const uint64_t g : {3, 8}) heads(g, other);
  index_.recover({RecordKind::kExtent, hash_, 20, 0}, extent(*tier_, 0, 10).place);  // its head was lost
  index_.finish_recovery();
  EXPECT_EQ(index_.generation_count(), 2u);
  EXPECT_EQ(find().undecoded, 6u);
  EXPECT_TRUE(read(6, 0, 10) == wanted(0, 10));
  EXPECT_EQ(read(5, 0, 10), "missing");
  EXPECT_GT(index_.next_generation(), 20u) << "no number is given twice";
}

// Reading a shard holds up nobody for long, and misses nothing when it grows meanwhile.
TEST_F(IndexTest, SlicesHoldAllOfAShard) {
  constexpr size_t kCount = 3000;
  const Place place = write_head(*head(1));
  uint64_t path = 7;  // all of them in one shard
  const auto insert_next = [&] {
    path += Index::kShards;
    const auto ticket = index_.begin_fill({path, 0}, "p" + std::to_string(path));
    EXPECT_TRUE(index_.insert(*ticket, place, head(ticket->generation)));
  };
  for (size_t i = 0; i < kCount; ++i) insert_next();
  std::set<uint64_t> seen;
  Index::Cursor cursor{7};
  std::vector<std::pair<KeyHash, Index::Entry>> slice;
  size_t slices = 0;
  for (bool more = true; more; ++slices) {
    more = index_.next_slice(cursor, slice);
    EXPECT_LE(slice.size(), 300u);
    for (const auto& [hash, entry] : slice) seen.insert(hash.path);
    if (slices == 3) {
      for (size_t i = 0; i < 2 * kCount; ++i) insert_next();
    }
  }
  EXPECT_GT(slices, kCount / 300);
  for (uint64_t i = 1; i <= kCount; ++i) ASSERT_TRUE(seen.contains(7 + i * Index::kShards)) << i;
  const auto ticket = index_.begin_fill({7, 0}, "under way");
  EXPECT_EQ(index_.filling(7), std::vector<std::string>{"under way"});
}

TEST_F(IndexTest, TheLatestRevisionIsRecovered) {
  const Place first = write_head(*head(1)), second = write_head(*head(1));
  for (const bool swapped : {false, true}) {
    Index index({fast_.get(), tier_.get()}, kMiB);
    const std::vector<std::pair<uint64_t, Place>> records{{0, first}, {1, second}};
    for (size_t i = 0; i < 2; ++i) {
      const auto& [revision, place] = records[swapped ? 1 - i : i];
      index.recover({RecordKind::kHead, hash_, 1, revision}, place);
    }
    index.finish_recovery();
    EXPECT_EQ(*index.find(hash_, key_, {}, false, {}).record.place, second);
  }
}

}  // namespace
}  // namespace nezha::cache
