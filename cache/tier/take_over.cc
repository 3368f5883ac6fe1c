// Taking over what an earlier process left on the medium: only headers and slot counts are read here.
#include <algorithm>
#include <cstring>

#include "cache/tier/segment.h"
#include "cache/tier/tier.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr uint64_t kSegmentsMin = 8;

bool is_segment_size(uint64_t bytes) {
  return bytes % format::kPageBytes == 0 && bytes >= 2 * format::kPageBytes && bytes <= limits::kSegmentBytesMax;
}

}  // namespace

Result<std::unique_ptr<Tier>> Tier::open(std::unique_ptr<Medium> medium, const TierOptions& options,
                                         const Clock& clock) {
  if (!options.segment_bytes && options.size_bytes < limits::kTierBytesMin)
    return fail(Remedy::kFixInput, "cache.tiers: a tier has at least 16Mi");
  std::unique_ptr<Tier> tier(new Tier(std::move(medium), options, clock));
  NEZHA_TRY(tier->take_over());
  return tier;
}

Result<void> Tier::take_over() {
  NEZHA_TRY(auto numbers, medium_->list());
  std::sort(numbers.begin(), numbers.end());
  const uint64_t size_bytes = segments_max_ * segment_bytes_;
  segments_.resize(numbers.empty() ? 0 : numbers.back() + 1);
  bool first = true;
  for (const uint32_t number : numbers) {
    auto adopted = adopt(number);
    if (!adopted) return adopted.error();
    // The segments that are there decide their size, unless the tier would become too coarse.
    if (const auto& segment = segments_[number]; segment && first) {
      first = false;
      if (segment->size_bytes() * kSegmentsMin <= size_bytes) segment_bytes_ = segment->size_bytes();
      segments_max_ = size_bytes / segment_bytes_;
    }
  }
  drop_surplus();
  segments_.resize(std::max<size_t>(segments_.size(), segments_max_));
  return ok();
}

// Makes one segment that is there ours, or gets it out of the way.
Result<void> Tier::adopt(uint32_t number) {
  auto opened = medium_->open(number);
  if (!opened) {
    ++recovery_.damaged;
    medium_->remove(number);
    return ok();
  }
  auto segment = std::make_shared<Segment>(number, std::move(opened.value()));
  const Result<void> readable = segment->bytes->load(0, format::kDataBegin);
  const auto state =
      readable ? format::decode_header(segment->bytes->data(), segment->header) : format::HeaderState::kDamaged;
  if (state == format::HeaderState::kForeign) {
    segment.reset();
    recovery_.set_aside.push_back(medium_->set_aside(number));
    return ok();
  }
  const bool fits = is_segment_size(segment->size_bytes());
  const bool valid = state == format::HeaderState::kValid && segment->header.segment_bytes == segment->size_bytes() &&
                     segment->header.queue <= 1;
  if (!fits || (state != format::HeaderState::kEmpty && !valid)) {
    ++recovery_.damaged;
    segment.reset();
    medium_->remove(number);
    return ok();
  }
  if (valid) {
    uint64_t word = 0;
    std::memcpy(&word, segment->bytes->data().data() + format::kCountOffset, sizeof word);
    const uint64_t slots_max = (segment->size_bytes() - format::kDataBegin) / format::kDescriptorBytes;
    segment->slots =
        static_cast<uint32_t>(std::min<uint64_t>(format::decode_count(segment->header.sequence, word), slots_max));
    segment->recovered_slots = segment->counted_slots = segment->slots;
    segment->verified = std::vector<std::atomic<uint8_t>>(segment->slots / 8 + 1);
    segment->data_end = segment->size_bytes() - segment->slots * format::kDescriptorBytes;
    next_sequence_ = std::max(next_sequence_, segment->header.sequence + 1);
  }
  segments_[number] = std::move(segment);
  return ok();
}

// Segments of another size than the tier's, and the oldest of too many, are removed; the others put into their queues.
void Tier::drop_surplus() {
  std::vector<SegmentPtr> kept;
  for (auto& segment : segments_) {
    if (!segment) continue;
    if (segment->size_bytes() == segment_bytes_) {
      kept.push_back(segment);
      continue;
    }
    medium_->remove(segment->number);
    segment.reset();
  }
  std::sort(kept.begin(), kept.end(),
            [](const SegmentPtr& a, const SegmentPtr& b) { return a->header.sequence < b->header.sequence; });
  while (kept.size() > segments_max_) {
    const uint32_t number = kept.front()->number;
    kept.erase(kept.begin());
    medium_->remove(number);
    segments_[number].reset();
  }
  for (auto& segment : kept) {
    if (segment->slots > 0)
      seal(segment, static_cast<Queue>(segment->header.queue));
    else
      free_.push_back(segment);
  }
  segment_count_ = kept.size();
  recovery_.segments = sealed_[0].size() + sealed_[1].size();
}

void Tier::visit_recovered(const Visit& visit) {
  std::vector<SegmentPtr> segments;
  {
    std::lock_guard lock(mutex_);
    for (const auto& queue : sealed_) segments.insert(segments.end(), queue.begin(), queue.end());
  }
  std::sort(segments.begin(), segments.end(),
            [](const SegmentPtr& a, const SegmentPtr& b) { return a->header.sequence < b->header.sequence; });
  for (const auto& segment : segments) {
    if (segment->recovered_slots > 0) visit_segment(*segment, visit);
  }
}

}  // namespace nezha::cache
