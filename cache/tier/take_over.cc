// Taking over what an earlier process left on the medium: only headers and slot counts are read here.
#include <algorithm>
#include <cstring>

#include "cache/tier/segment.h"
#include "cache/tier/tier.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

bool is_segment_size(uint64_t bytes) {
  return bytes % format::kPageBytes == 0 && bytes >= 2 * format::kPageBytes && bytes <= limits::kSegmentBytesMax;
}

}  // namespace

Result<std::unique_ptr<Tier>> Tier::open(std::unique_ptr<Medium> medium, const TierOptions& options,
                                         const Clock& clock) {
  if (!options.segment_bytes && options.size_bytes < limits::kTierBytesMin)
    return fail(Remedy::kFixInput, "cache.tiers: a tier has at least 16Mi");
  std::unique_ptr<Tier> tier(new Tier(std::move(medium), options, clock));
  tier->lost_tombstones_ = options.distrusted;
  NEZHA_TRY(tier->take_over());
  return tier;
}

Result<void> Tier::take_over() {
  NEZHA_TRY(auto numbers, medium_->list());
  std::sort(numbers.begin(), numbers.end());
  const uint64_t size_bytes = segments_max_ * segment_bytes_;
  segments_.resize(numbers.empty() ? 0 : numbers.back() + 1);
  for (const uint32_t number : numbers) adopt(number);
  if (lost_tombstones_) {
    for (auto& segment : segments_) {
      if (!segment) continue;
      recovery_.distrusted += segment->slots > 0 ? 1 : 0;
      if (!medium_->remove(segment->number)) abandoned_ = true;  // nobody may believe it
      segment.reset();
    }
  }
  // The segments that are there decide their size, unless the tier would become too coarse.
  const auto first = std::find_if(segments_.begin(), segments_.end(), [](const auto& segment) { return segment; });
  if (first != segments_.end()) {
    if ((*first)->size_bytes() * kSegmentsMin <= size_bytes) segment_bytes_ = (*first)->size_bytes();
    segments_max_ = size_bytes / segment_bytes_;
  }
  segments_.resize(std::max<size_t>(segments_.size(), segments_max_));
  const auto dropped = drop_surplus();
  if (!dropped.empty()) segments_.resize(segments_.size() + 1);  // for their tombstones, while they are still there
  NEZHA_TRY(save_tombstones(dropped));
  for (const auto& segment : dropped) {
    medium_->remove(segment->number);
    segments_[segment->number].reset();
  }
  // Sockets of a process that has died may still send what lay there.
  std::vector<SegmentPtr> unused(free_.begin(), free_.end());
  free_.clear();
  renew(std::move(unused));
  return ok();
}

// Removes a segment of which nothing can be read.
void Tier::lose(uint32_t number, bool may_hold_tombstones) {
  ++recovery_.damaged;
  lost_tombstones_ |= may_hold_tombstones;
  if (!medium_->remove(number)) lost_tombstones_ = abandoned_ = true;
}

// Makes one segment that is there ours, or gets it out of the way. Without the tombstones of one that is lost, records
// of the others could be what must not come back.
void Tier::adopt(uint32_t number) {
  using State = format::HeaderState;
  auto opened = medium_->open(number);
  if (!opened) return lose(number, opened.error().remedy != Remedy::kAbsent);  // kAbsent: its making was cut short
  auto segment = std::make_shared<Segment>(number, std::move(opened.value()));
  const Result<void> readable = segment->bytes->load(0, format::kDataBegin);
  const auto state = readable ? format::decode_header(segment->bytes->data(), segment->header) : State::kDamaged;
  if (state == State::kForeign) {
    segment.reset();
    recovery_.set_aside.push_back(medium_->set_aside(number));
    lost_tombstones_ = true;
    return;
  }
  const bool fits = is_segment_size(segment->size_bytes());
  if (state == State::kUnfinished || (state == State::kEmpty && !fits)) {
    segment.reset();
    (void)medium_->remove(number);
    return;
  }
  if (state == State::kEmpty) {
    next_sequence_ = std::max(next_sequence_, segment->header.sequence + 1);
    segments_[number] = std::move(segment);
    return;
  }
  const auto& header = segment->header;
  if (!fits || state != State::kValid || header.segment_bytes != segment->size_bytes() || header.queue > 1)
    return lose(number, true);
  if (!find_slots(*segment)) return lose(number, header.queue == static_cast<uint8_t>(Queue::kMain));
  next_sequence_ = std::max(next_sequence_, header.sequence + 1);
  segments_[number] = std::move(segment);
}

// The count says where to look at least; records behind it vouch for themselves. False: the medium cannot read them.
bool Tier::find_slots(Segment& segment) const {
  constexpr uint32_t kGapMax = 64;  // slots of writers that died: there are fewer at once
  uint64_t word = 0;
  std::memcpy(&word, segment.bytes->data().data() + format::kCountOffset, sizeof word);
  const auto slots_max = static_cast<uint32_t>((segment.size_bytes() - format::kDataBegin) / format::kDescriptorBytes);
  uint32_t slots = std::min(format::decode_count(segment.header.sequence, word), slots_max);
  for (uint32_t end = slots, loaded = 0; end < slots_max && end < slots + kGapMax; ++end) {
    if (end >= loaded) {
      loaded = std::min(end + kGapMax, slots_max);
      if (!segment.load_descriptors(loaded)) return false;
    }
    if (format::decode_descriptor(segment.descriptor(end), segment.header, end)) slots = end + 1;
  }
  segment.slots = segment.recovered_slots = segment.counted_slots = slots;
  segment.verified = std::vector<std::atomic<uint8_t>>(slots / 8 + 1);
  segment.data_end = segment.size_bytes() - slots * format::kDescriptorBytes;
  return true;
}

// Puts the segments into their queues, except those of another size and the oldest of too many. Those of probation go
// first: they hold no tombstones.
std::vector<Tier::SegmentPtr> Tier::drop_surplus() {
  std::vector<SegmentPtr> kept, dropped;
  for (const auto& segment : segments_) {
    if (segment) (segment->size_bytes() == segment_bytes_ ? kept : dropped).push_back(segment);
  }
  const auto rank = [](const SegmentPtr& segment) {
    return std::pair(segment->slots > 0 ? 1 + segment->header.queue : 0, segment->header.sequence);
  };
  std::sort(kept.begin(), kept.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  // One is always spared: without it nothing could be reclaimed, since that writes first.
  const size_t keep_max = segments_max_ - 1;
  const size_t surplus = kept.size() > keep_max ? kept.size() - keep_max : 0;
  dropped.insert(dropped.end(), kept.begin(), kept.begin() + static_cast<ptrdiff_t>(surplus));
  kept.erase(kept.begin(), kept.begin() + static_cast<ptrdiff_t>(surplus));
  std::sort(kept.begin(), kept.end(),
            [](const auto& a, const auto& b) { return a->header.sequence < b->header.sequence; });
  for (const auto& segment : kept) {
    if (segment->slots > 0)
      seal(segment, static_cast<Queue>(segment->header.queue));
    else
      free_.push_back(segment);
  }
  segment_count_ = kept.size();
  recovery_.segments = sealed_[0].size() + sealed_[1].size();
  return dropped;
}

// Tombstones of segments that are about to go, for records of segments that stay.
Result<void> Tier::save_tombstones(const std::vector<SegmentPtr>& dropped) {
  for (const auto& segment : dropped) {
    NEZHA_TRY(visit_segment(*segment, [&](const Record& record, const Place&) {
      if (is_tombstone(record) && older_records(record.offset, nullptr)) tombstones_.push_back(record);
    }));
  }
  return carry_tombstones(tombstones_);
}

Result<void> Tier::visit_recovered(const Visit& visit, Which which) {
  std::vector<SegmentPtr> segments;
  {
    std::lock_guard lock(mutex_);
    for (const auto& queue : sealed_) segments.insert(segments.end(), queue.begin(), queue.end());
  }
  for (const Record& tombstone : tombstones_) visit(tombstone, {});
  std::sort(segments.begin(), segments.end(),
            [](const SegmentPtr& a, const SegmentPtr& b) { return a->header.sequence < b->header.sequence; });
  for (const auto& segment : segments) {
    if (segment->recovered_slots == 0) continue;
    NEZHA_TRY(const uint32_t seen, visit_segment(*segment, visit, which));
    if (which == Which::kAll) segment->records = seen;
  }
  return ok();
}

}  // namespace nezha::cache
