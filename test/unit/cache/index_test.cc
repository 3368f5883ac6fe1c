// The index: generations, extents and their union, invalidation with fills under way, reclaim.
#include "cache/index/index.h"

#include <gtest/gtest.h>

#include "test/support/scripted_origin.h"

namespace nezha::cache {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

class IndexTest : public testing::Test {
 protected:
  std::unique_ptr<Tier> tier_ =
      std::move(make_segment_tier({config::Medium::kMemory, "", 16 * kMiB}, [this](const auto& owners) {
                  index_.sweep(owners);
                }).value());
  Index index_{*tier_};
  const CacheKey key_{"data.example/x", ""};
  const std::string body_ = test::pattern_bytes(4 * kMiB, 1);

  StoredHeadPtr head(const std::string& etag = "\"v1\"", int second = 0, const std::string& vary_value = "") {
    auto out = std::make_shared<StoredHead>();
    out->fields.add("ETag", etag);
    out->etag = http::parse_entity_tag(etag);
    out->total_bytes = body_.size();
    out->response_time = WallTime{} + std::chrono::seconds(second);
    if (!vary_value.empty()) out->selecting.emplace_back("accept", vary_value);
    return out;
  }
  std::vector<Extent> extents(uint64_t begin, uint64_t end) {
    std::vector<Extent> out;
    for (uint64_t at = begin; at < end; at += kMiB) {
      const auto place =
          tier_->write(Index::owner_hash(key_.path), std::string_view(body_).substr(at, std::min(kMiB, end - at)));
      EXPECT_TRUE(place);
      out.push_back({at, place.value()});
    }
    return out;
  }
  bool publish(const StoredHeadPtr& head, uint64_t begin, uint64_t end) {
    return index_.publish(*index_.begin_fill(key_), key_, head, extents(begin, end));
  }
  std::string read(uint64_t begin, uint64_t end) {
    const auto found = index_.find(key_, {});
    const auto body = found ? index_.pin(key_, found, {begin, end}) : std::nullopt;
    if (!body) return "missing";
    std::string out;
    for (const auto& piece : body->pieces) out += piece.bytes;
    return out;
  }
  std::string wanted(uint64_t begin, uint64_t end) const { return body_.substr(begin, end - begin); }
};

TEST_F(IndexTest, UnionOfExtents) {
  ASSERT_TRUE(publish(head(), 1000, 5000));
  EXPECT_EQ(read(1000, 5000), wanted(1000, 5000));
  EXPECT_EQ(read(2000, 2001), wanted(2000, 2001));
  EXPECT_EQ(read(999, 1001), "missing");
  EXPECT_EQ(read(4999, 5001), "missing");
  ASSERT_TRUE(publish(head(), 4000, 9000));  // overlaps
  ASSERT_TRUE(publish(head(), 0, 1000));     // touches
  ASSERT_TRUE(publish(head(), 2000, 3000));  // inside
  EXPECT_EQ(read(0, 9000), wanted(0, 9000));
  EXPECT_EQ(read(0, 9001), "missing");
  ASSERT_TRUE(publish(head(), 8500, body_.size()));
  EXPECT_TRUE(read(0, body_.size()) == body_);
}

TEST_F(IndexTest, ManyScatteredExtentsInAnyOrder) {
  std::vector<uint64_t> begins;
  for (uint64_t at = 0; at < body_.size(); at += 50'000) begins.push_back(at);
  for (size_t i = 0; i < begins.size(); ++i) {
    const uint64_t at = begins[i * 37 % begins.size()];
    ASSERT_TRUE(publish(head(), at, std::min<uint64_t>(at + 50'000 + i % 7 * 1000, body_.size())));
  }
  EXPECT_TRUE(read(0, body_.size()) == body_);
  for (uint64_t at = 0; at + 100'000 < body_.size(); at += 77'777)
    EXPECT_TRUE(read(at, at + 99'999) == wanted(at, at + 99'999));
}

TEST_F(IndexTest, AnotherValidatorReplaces) {
  ASSERT_TRUE(publish(head("\"v1\"", 1), 0, 1000));
  ASSERT_TRUE(publish(head("\"v2\"", 2), 1000, 2000));
  EXPECT_EQ(read(0, 1000), "missing");
  EXPECT_EQ(read(1000, 2000), wanted(1000, 2000));
  EXPECT_FALSE(publish(head("\"v1\"", 1), 0, 2000)) << "an older answer that took longer";
  EXPECT_EQ(index_.find(key_, {})->etag->text, "\"v2\"");
}

TEST_F(IndexTest, WeakValidatorsNeverJoin) {
  ASSERT_TRUE(publish(head("W/\"v1\"", 1), 0, 1000));
  ASSERT_TRUE(publish(head("W/\"v1\"", 2), 1000, 2000));
  EXPECT_EQ(read(0, 2000), "missing");
}

TEST_F(IndexTest, InvalidationDoomsFillsUnderWay) {
  const auto before = index_.begin_fill(key_);
  const auto other = index_.begin_fill({"data.example/other", ""});
  ASSERT_TRUE(publish(head(), 0, 1000));
  index_.invalidate(key_.path);
  EXPECT_EQ(index_.find(key_, {}), nullptr);
  EXPECT_EQ(index_.object_count(), 0u);
  EXPECT_FALSE(index_.publish(*before, key_, head(), extents(0, 1000)));
  EXPECT_FALSE(other->doomed);
  EXPECT_TRUE(publish(head(), 0, 1000)) << "a fill that began behind it";
}

TEST_F(IndexTest, InvalidationReachesEveryQueryAndVariant) {
  const CacheKey query{key_.path, "a=b"};
  ASSERT_TRUE(publish(head("\"v1\"", 0, "gzip"), 0, 10));
  ASSERT_TRUE(publish(head("\"v1\"", 0, "br"), 0, 10));
  ASSERT_TRUE(index_.publish(*index_.begin_fill(query), query, head(), extents(0, 10)));
  index_.invalidate(key_.path);
  EXPECT_EQ(index_.find(query, {}), nullptr);
  EXPECT_EQ(index_.object_count(), 0u);
  EXPECT_EQ(index_.head_bytes(), 0u) << "all of it is accounted for";
}

TEST_F(IndexTest, VariantsAreSelectedByTheRequest) {
  ASSERT_TRUE(publish(head("\"gz\"", 1, "gzip"), 0, 10));
  ASSERT_TRUE(publish(head("\"br\"", 2, "br"), 0, 10));
  http::Fields request;
  request.add("Accept", "gzip");
  EXPECT_EQ(index_.find(key_, request)->etag->text, "\"gz\"");
  request.set("Accept", "br");
  EXPECT_EQ(index_.find(key_, request)->etag->text, "\"br\"");
  request.set("Accept", "other");
  EXPECT_EQ(index_.find(key_, request), nullptr);
}

TEST_F(IndexTest, RefreshKeepsTheBytes) {
  ASSERT_TRUE(publish(head(), 0, 1000));
  const auto old_head = index_.find(key_, {});
  const auto new_head = head("\"v1\"", 50);
  EXPECT_EQ(index_.refresh(key_, old_head, new_head), new_head);
  EXPECT_EQ(read(0, 1000), wanted(0, 1000));
  EXPECT_EQ(index_.refresh(key_, old_head, head()), nullptr) << "that generation's head is another one now";
}

TEST_F(IndexTest, ReclaimedExtentsDisappear) {
  ASSERT_TRUE(publish(head(), 0, body_.size()));
  for (int i = 0; i < 64; ++i) ASSERT_TRUE(tier_->write(42, test::pattern_bytes(kMiB, 1)));
  EXPECT_EQ(read(0, 10), "missing");
  EXPECT_EQ(index_.object_count(), 0u);
  EXPECT_EQ(index_.head_bytes(), 0u);
}

TEST_F(IndexTest, EmptyBodiesAreEntries) {
  auto empty = std::make_shared<StoredHead>(*head());
  empty->total_bytes = 0;
  const auto place = tier_->write(Index::owner_hash(key_.path), "");
  ASSERT_TRUE(index_.publish(*index_.begin_fill(key_), key_, empty, {{0, place.value()}}));
  EXPECT_EQ(read(0, 0), "");
}

}  // namespace
}  // namespace nezha::cache
