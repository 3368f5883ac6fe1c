// The store against a plain map: fills that begin, go on piece by piece and end in any order, overwrites,
// invalidations, refreshes and ranged reads, in a store so small that segments are reclaimed all the time; now and then
// it dies in the middle of a write and is opened again from what the medium then holds. No wrong byte ever, nothing
// invalidated or overwritten back. Prints its seed; NEZHA_SEED replays it, NEZHA_MODEL_STEPS makes it longer.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <set>

#include "nezha/base/text.h"
#include "test/support/environment.h"
#include "test/support/faulty_medium.h"
#include "test/support/scripted_origin.h"
#include "test/support/store_box.h"

namespace nezha::test {
namespace {

using cache::CacheKey;
using cache::Queue;

constexpr size_t kKiB = 1024;
constexpr size_t kPaths = 12;
constexpr size_t kQueries = 2;

// What an object is in one of its versions follows from the two numbers.
struct Version {
  size_t object = 0;
  int number = 0;
  uint64_t seed() const { return object * 1'000'003 + static_cast<uint64_t>(number); }
  size_t size_bytes() const {
    static constexpr size_t kSizes[] = {0, 1, 300, 4096, 5000, 20'000, 70'000, 150'000};
    return kSizes[seed() % std::size(kSizes)];
  }
  std::string etag() const { return "\"" + std::to_string(object) + "-" + std::to_string(number) + "\""; }
  std::string body() const { return pattern_bytes(size_bytes(), seed()); }
};

CacheKey key_of(size_t object) {
  return {"data.example/" + std::to_string(object / kQueries), object % kQueries ? "q=1" : ""};
}

// A fill under way, as cache/fill does it: by pieces or whole.
struct SlowFill {
  Version version;
  int second = 0;
  bool by_pieces = false;
  std::shared_ptr<cache::FillTicket> ticket;
  std::string body;
  uint64_t generation = 0;
  uint64_t at = 0;
  uint64_t end = 0;
  std::vector<cache::Extent> extents;
  std::vector<cache::PinnedBytes> pins;
};

struct Layout {
  std::vector<std::pair<size_t, size_t>> durable;  // size, segment size; fastest first
  size_t memory_bytes = 0;                         // of a tier in front
};

class Model {
 public:
  Model(uint64_t seed, Layout layout) : random_(seed), layout_(std::move(layout)) {
    disks_.resize(layout_.durable.size());
    open();
  }

  void step() {
    ++second_;
    const size_t object = random_() % (kPaths * kQueries);
    switch (random_() % 16) {
      case 0:
        return invalidate(object);
      case 1:
        ++origin_[object];  // behind the cache's back
        return;
      case 2:
        return die(object);
      case 3:
        return refresh(object);
      case 4:
        return drop(object);
      case 5:
      case 6:
        return begin(object);
      case 7:
      case 8:
      case 9:
      case 10:
        return go_on();
      default:
        return read(object);
    }
  }
  size_t hits() const { return hits_; }
  size_t deaths() const { return deaths_; }
  uint64_t reclaimed_bytes() const { return appended_; }

 private:
  void open() {
    std::vector<cache::Store::TierPlan> plans;
    if (layout_.memory_bytes > 0)
      plans.push_back({cache::make_medium({config::Medium::kMemory, "", 0}).value(), layout_.memory_bytes, 64 * kKiB});
    for (size_t i = 0; i < disks_.size(); ++i)
      plans.push_back({disks_[i].medium(), layout_.durable[i].first, layout_.durable[i].second});
    // Few decoded heads, so that they are read back from the medium too.
    box_ = std::make_unique<StoreBox>(std::move(plans), cache::StoreLimits{64 * 1500, 1 << 20, 1 << 30});
  }

  uint64_t dice(uint64_t sides) { return random_() % sides; }

  // Whatever the model allows under the key.
  bool allowed(size_t object, const std::string& etag) const {
    const auto known = allowed_.find(object);
    return known != allowed_.end() && known->second.contains(etag);
  }

  void read(size_t object) {
    const CacheKey key = key_of(object);
    const auto head = box_->find(key);
    if (!head) return;
    ASSERT_TRUE(allowed(object, head->etag->text)) << "object " << object << " answers as " << head->etag->text;
    const auto revisions = revisions_.find({object, head->generation});
    if (revisions != revisions_.end()) {
      ASSERT_TRUE(revisions->second.contains(revision_of(*head)))
          << "object " << object << " answers under the head of second '" << revision_of(*head) << "'";
    }
    const Version version{object, std::atoi(head->etag->text.c_str() + head->etag->text.find('-') + 1)};
    const std::string wanted = version.body();
    ASSERT_EQ(*head->total_bytes, wanted.size());
    const uint64_t begin = dice(2) ? 0 : dice(wanted.size() + 1);
    const uint64_t end = begin == 0 && dice(2) ? wanted.size() : begin + dice(wanted.size() - begin + 1);
    bool damaged = false;
    const auto got = box_->read(key, head, {begin, end}, &damaged);
    ASSERT_FALSE(damaged);
    if (!got) return;
    ASSERT_TRUE(*got == wanted.substr(begin, end - begin)) << "object " << object << " " << begin << "-" << end;
    if (head->total_bytes == end - begin && end > 0) {
      const auto body = box_->store().pin(key, head, {begin, end});
      box_->store().note_hit(key, head, *body);
    }
    ++hits_;
  }

  void begin(size_t object) {
    if (fills_.size() > 6) return go_on();
    SlowFill fill;
    fill.version = {object, origin_[object]};
    fill.second = second_;
    fill.by_pieces = dice(2);
    fill.ticket = box_->store().begin_fill(key_of(object));
    fill.generation = fill.ticket->generation;
    fill.body = fill.version.body();
    fill.end = fill.body.size();
    if (fill.by_pieces && dice(2) && fill.end > 0) {  // a range
      fill.at = dice(fill.end);
      fill.end = fill.at + 1 + dice(fill.end - fill.at);
    }
    fills_.push_back(std::move(fill));
  }

  bool open_head(SlowFill& fill) {
    const auto head = head_of(fill.version.etag(), fill.body.size(), fill.second);
    const auto opened = box_->store().open_generation(*fill.ticket, key_of(fill.version.object), head,
                                                      dice(2) ? Queue::kProbation : Queue::kMain, fill.by_pieces);
    if (!opened) {
      // It may have given up what it wanted to replace, and it may have kept it.
      return false;
    }
    EXPECT_FALSE(fill.ticket->doomed);
    fill.generation = opened.value()->generation;
    allowed_[fill.version.object] = {fill.version.etag()};
    revisions_[{fill.version.object, fill.generation}] = {revision_of(*opened.value())};
    return true;
  }

  // One step of one fill: a piece, or its end.
  void go_on() {
    if (fills_.empty()) return;
    const size_t index = dice(fills_.size());
    SlowFill& fill = fills_[index];
    bool ended = dice(40) == 0;  // breaks off
    if (!ended && fill.at < fill.end) {
      const uint64_t piece_max = box_->store().fill_tier().piece_bytes();
      const auto piece = std::string_view(fill.body).substr(fill.at, std::min(fill.end - fill.at, 1 + dice(piece_max)));
      if (fill.by_pieces && fill.pins.empty()) ended = !open_head(fill);
      if (!ended) {
        const auto appended =
            box_->store().append_extent(*fill.ticket, fill.generation, Queue::kProbation, fill.at, piece);
        ended = !appended;
        if (appended) {
          appended_ += piece.size();
          fill.extents.push_back({fill.at, appended.value().place});
          fill.pins.push_back(appended.value().bytes);
          fill.at += piece.size();
          if (fill.by_pieces) ended = !box_->store().add_extents(*fill.ticket, fill.generation, {fill.extents.back()});
        }
      }
    } else if (!ended) {
      if (!fill.by_pieces || fill.pins.empty()) {
        if (open_head(fill)) (void)box_->store().add_extents(*fill.ticket, fill.generation, fill.extents);
      }
      ended = true;
    }
    if (ended) fills_.erase(fills_.begin() + static_cast<ptrdiff_t>(index));
  }

  // The source changed through us: acknowledged when it returns.
  void invalidate(size_t object) {
    const size_t path = object / kQueries;
    for (size_t query = 0; query < kQueries; ++query) {
      ++origin_[path * kQueries + query];
      allowed_.erase(path * kQueries + query);
    }
    box_->invalidate(key_of(object).path);
    for (const SlowFill& fill : fills_) {
      if (fill.version.object / kQueries == path) {
        ASSERT_TRUE(fill.ticket->doomed);
      }
    }
  }

  void refresh(size_t object) {
    const auto head = box_->find(key_of(object));
    if (!head) return;
    ASSERT_TRUE(allowed(object, head->etag->text));
    auto next = std::make_shared<cache::StoredHead>(*head);
    next->fields.set("X-Seen", std::to_string(second_));
    cache::complete(*next);
    const auto in_force = box_->refresh(key_of(object), head, next);
    ASSERT_TRUE(!in_force || in_force->etag->text == head->etag->text);
    if (in_force) revisions_[{object, in_force->generation}] = {revision_of(*in_force)};
  }

  static std::string revision_of(const cache::StoredHead& head) {
    return std::string(head.fields.find("X-Seen").value_or(""));
  }

  void drop(size_t object) {
    const auto head = dice(4) == 0 ? box_->find(key_of(object)) : nullptr;
    if (!head) return;
    box_->drop(key_of(object), head);
    allowed_.erase(object);
  }

  // Kills the process while it does one or more things, and opens what the media then hold.
  void die(size_t object) {
    if (dice(8) != 0) return read(object);
    ++deaths_;
    const auto before = allowed_;
    std::vector<std::unique_ptr<TestDisk>> copies(disks_.size());
    if (disks_.size() == 1 && dice(3) != 0) {
      disks_[0].copy_later(dice(6), random_());
      const auto allowed_before = allowed_;
      const auto revisions_before = revisions_;
      switch (dice(3)) {
        case 0:
          invalidate(object);
          break;
        case 1:
          refresh(object);
          break;
        default:
          go_on();
      }
      copies[0] = disks_[0].take_copy();
      // What was not finished may have happened or not.
      if (copies[0]) {
        for (const auto& [key, etags] : allowed_before) allowed_[key].insert(etags.begin(), etags.end());
        for (const auto& [key, seen] : revisions_before) revisions_[key].insert(seen.begin(), seen.end());
      }
    }
    fills_.clear();
    for (size_t i = 0; i < disks_.size(); ++i) disks_[i] = copies[i] ? *copies[i] : disks_[i].copy();
    for (const auto& tier : box_->store().tier_states()) {
      ASSERT_FALSE(tier.failed) << tier.name;
    }
    std::map<size_t, std::string> warm;
    if (!copies[0] && has_spare_segment()) remember_warm(warm);
    box_.reset();
    open();
    for (const auto& [key, body] : warm) {
      const auto again = box_->read(key_of(key));
      ASSERT_TRUE(again && *again == body) << "object " << key << " was not warm after a restart";
    }
  }

  // Otherwise a restart gives up one, to be able to reclaim others.
  bool has_spare_segment() const {
    const auto numbers = disks_[0].numbers();
    if (numbers.size() < layout_.durable[0].first / layout_.durable[0].second) return true;
    return std::any_of(numbers.begin(), numbers.end(),
                       [&](uint32_t number) { return disks_[0].read(number).starts_with(std::string(8, '\0')); });
  }

  // What lies on durable media alone.
  void remember_warm(std::map<size_t, std::string>& warm) {
    if (layout_.memory_bytes > 0 || disks_.size() > 1) return;
    for (size_t object = 0; object < kPaths * kQueries; ++object) {
      auto body = box_->read(key_of(object));
      if (body) warm.emplace(object, std::move(*body));
    }
  }

  std::mt19937_64 random_;
  const Layout layout_;
  std::vector<TestDisk> disks_;
  std::unique_ptr<StoreBox> box_;
  std::map<size_t, int> origin_;
  std::map<size_t, std::set<std::string>> allowed_;  // by object
  // What of a generation's heads may be in force, by object and generation.
  std::map<std::pair<size_t, uint64_t>, std::set<std::string>> revisions_;
  std::vector<SlowFill> fills_;
  int second_ = 0;
  size_t hits_ = 0;
  size_t deaths_ = 0;
  uint64_t appended_ = 0;
};

void run_model(const Layout& layout) {
  const uint64_t first = from_environment("NEZHA_SEED", std::random_device{}());
  const uint64_t steps = from_environment("NEZHA_MODEL_STEPS", 60'000);
  constexpr uint64_t kStepsPerSeed = 3000;
  size_t hits = 0, deaths = 0;
  uint64_t written = 0;
  for (uint64_t seed = first; (seed - first) * kStepsPerSeed < steps; ++seed) {
    SCOPED_TRACE("NEZHA_SEED=" + std::to_string(seed));
    Model model(seed, layout);
    for (uint64_t i = 0; i < kStepsPerSeed && !testing::Test::HasFailure(); ++i) model.step();
    hits += model.hits(), deaths += model.deaths(), written += model.reclaimed_bytes();
    if (testing::Test::HasFailure()) break;
  }
  std::cout << "NEZHA_SEED=" << first << ": " << hits << " hits checked, " << deaths << " deaths, " << written / kKiB
            << " KiB written" << std::endl;
  EXPECT_GT(hits, 0u);
}

TEST(StoreModel, OneTier) { run_model({{{768 * kKiB, 64 * kKiB}}, 0}); }
TEST(StoreModel, MemoryInFront) { run_model({{{768 * kKiB, 64 * kKiB}}, 512 * kKiB}); }
TEST(StoreModel, TwoDurableTiers) { run_model({{{512 * kKiB, 64 * kKiB}, {768 * kKiB, 64 * kKiB}}, 0}); }
TEST(StoreModel, ThreeTiers) { run_model({{{512 * kKiB, 64 * kKiB}, {768 * kKiB, 64 * kKiB}}, 512 * kKiB}); }

}  // namespace
}  // namespace nezha::test
