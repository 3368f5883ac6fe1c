#include "cache/tier/tier.h"

#include <algorithm>

#include "cache/tier/segment.h"
#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr uint64_t kSegmentsWanted = 128;  // finer reclaiming costs hit ratio less
constexpr uint64_t kPiecesMin = 16;        // in a segment: larger ones leave too much of it empty
constexpr uint64_t kTombstoneRoom = 64 * format::kDescriptorBytes;  // kept back in each segment
constexpr uint64_t kRoomForHeads = 4 * format::kPageBytes;
constexpr uint64_t kNoPieces = format::kDataBegin + kTombstoneRoom + kRoomForHeads;
constexpr std::chrono::seconds kGrowAgainAfter{60};
constexpr std::chrono::seconds kResidentFor{2};  // pages that were just read are not the kernel's first to give up

uint64_t choose_segment_bytes(uint64_t size_bytes) {
  uint64_t wanted = std::clamp(size_bytes / kSegmentsWanted, limits::kSegmentBytesMin, limits::kSegmentBytesMax);
  // Whole pieces of the largest size, so that an object of one piece is one record.
  if (wanted / kPiecesMin >= limits::kPieceBytes)
    wanted = (wanted - kNoPieces) / limits::kPieceBytes * limits::kPieceBytes + kNoPieces;
  return std::min(wanted, size_bytes / kSegmentsMin) / format::kPageBytes * format::kPageBytes;
}

uint64_t align(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

}  // namespace

Tier::Tier(std::unique_ptr<Medium> medium, const TierOptions& options, const Clock& clock)
    : id_(options.id), clock_(clock), medium_(std::move(medium)) {
  const uint64_t for_segments = options.size_bytes - options.beside_bytes;
  segment_bytes_ = options.segment_bytes ? options.segment_bytes : choose_segment_bytes(for_segments);
  segments_max_ = for_segments / segment_bytes_;
}

Tier::~Tier() = default;

Tier::Reservation::~Reservation() { tier_.reserved_bytes_ -= size_bytes_; }

uint64_t Tier::record_bytes_max() const { return segment_bytes_ - format::kDataBegin - 2 * kTombstoneRoom; }

uint64_t Tier::piece_bytes() const {
  const uint64_t usable = segment_bytes_ - kNoPieces;
  const uint64_t wanted = std::min<uint64_t>(limits::kPieceBytes, segment_bytes_ / kPiecesMin);
  const uint64_t pieces = (usable + wanted - 1) / wanted;
  return usable / pieces / format::kPageBytes * format::kPageBytes;
}

std::unique_ptr<Tier::Reservation> Tier::reserve(uint64_t size_bytes) {
  // Three segments are never promised: the two open ones and the one kept back may be unusable.
  const uint64_t promised_max = (segments_max_ - 3) * segment_bytes_;
  if (abandoned_ || size_bytes > promised_max) return nullptr;
  if (reserved_bytes_.fetch_add(size_bytes) > promised_max - size_bytes) {
    reserved_bytes_ -= size_bytes;
    return nullptr;
  }
  return std::make_unique<Reservation>(*this, size_bytes);
}

Result<Tier::Appended> Tier::append(Queue queue, const Record& record, std::string_view bytes) {
  auto appended = append(queue, Use::kNormal, record, bytes);
  if (appended) appended_bytes_ += bytes.size();
  return appended;
}

Result<Tier::Appended> Tier::append_kept(const Record& record, std::string_view bytes) {
  auto appended = append(Queue::kMain, Use::kKept, record, bytes);
  if (appended) kept_bytes_ += bytes.size();
  return appended;
}

// In main, whose segments live longest: a tombstone is carried on for as long as it is needed.
Result<void> Tier::append_tombstone(Record tombstone, bool durable) {
  if (tombstone.offset == 0) tombstone.offset = next_sequence();
  for (int copy = 0; copy < 2; ++copy) {
    auto written = append(Queue::kMain, Use::kTombstone, tombstone, {});
    if (!written && written.error().remedy == Remedy::kRetryLater)  // a device that is full from the start
      written = append(Queue::kProbation, Use::kTombstone, tombstone, {});
    NEZHA_TRY(const auto appended, std::move(written));
    if (!durable) continue;
    NEZHA_TRY(sync_record(appended.place));
  }
  return ok();
}

Result<void> Tier::carry_tombstones(const std::vector<Record>& tombstones) {
  std::vector<Place> carried;
  for (Record tombstone : tombstones) {
    if (tombstone.offset == 0) tombstone.offset = next_sequence();
    NEZHA_TRY(const auto appended, append(Queue::kMain, Use::kTombstone, tombstone, {}));
    carried.push_back(appended.place);
  }
  // Neighbours share a page: the last of each group of them stands for all.
  for (size_t i = 0; i < carried.size(); ++i) {
    const auto page = [](const Place& place) { return place.slot * format::kDescriptorBytes / format::kPageBytes; };
    const bool last = i + 1 == carried.size() || carried[i + 1].segment != carried[i].segment ||
                      page(carried[i + 1]) != page(carried[i]);
    if (!last) continue;
    NEZHA_TRY(sync_record(carried[i]));
  }
  return ok();
}

uint64_t Tier::next_sequence() const {
  std::lock_guard lock(mutex_);
  return next_sequence_;
}

Result<void> Tier::sync_record(const Place& place) {
  Segment& segment = *segments_[place.number()];
  NEZHA_TRY(segment.bytes->sync(format::slot_offset(segment.size_bytes(), place.slot), format::kDescriptorBytes));
  return segment.bytes->sync(0, format::kDataBegin);
}

Result<Tier::Appended> Tier::append(Queue queue, Use use, const Record& record, std::string_view bytes) {
  if (bytes.size() > record_bytes_max()) return fail(Remedy::kGiveUp, "too large for the tier's segments");
  NEZHA_TRY(const Slot slot, allocate(queue, use, bytes.size()));
  Result<void> written = write_record(slot, record, bytes);
  {
    std::lock_guard lock(mutex_);
    --slot.segment->writers;
  }
  if (!written) return written.error();
  const Place place{static_cast<uint32_t>(id_) << 24 | slot.segment->number, slot.slot,
                    static_cast<uint32_t>(slot.offset / format::kSmallAlignBytes), static_cast<uint32_t>(bytes.size())};
  return Appended{place, pin(place)};
}

Result<Tier::Slot> Tier::allocate(Queue queue, Use use, uint64_t size_bytes) {
  {
    std::lock_guard lock(mutex_);
    if (const auto slot = slot_in_open(queue, use, size_bytes)) return *slot;
  }
  std::lock_guard one_by_one(opening_mutex_);
  for (;;) {
    {
      std::lock_guard lock(mutex_);
      if (abandoned_) return fail(Remedy::kGiveUp, "the tier was given up after an error");
      if (const auto slot = slot_in_open(queue, use, size_bytes)) return *slot;
    }
    NEZHA_TRY(open_segment(queue, use != Use::kNormal));
  }
}

// Nothing: it takes another segment.
std::optional<Tier::Slot> Tier::slot_in_open(Queue queue, Use use, uint64_t size_bytes) {
  const auto& open = open_[static_cast<size_t>(queue)];
  // While no segment is kept back, what is left of main is for reclaiming.
  const bool kept_back = !free_.empty() || (growing_ && segment_count_ < segments_max_);
  if (abandoned_ || !open || (!kept_back && use == Use::kNormal && queue == Queue::kMain)) return std::nullopt;
  const uint64_t alignment = size_bytes >= format::kPageBytes ? format::kPageBytes : format::kSmallAlignBytes;
  const uint64_t offset = align(open->data_end, alignment);
  const uint64_t room = use == Use::kTombstone ? 0 : kTombstoneRoom;
  if (offset + size_bytes + room > format::slot_offset(open->size_bytes(), open->slots)) return std::nullopt;
  const Slot slot{open, open->slots++, offset};
  if (size_bytes > 0) open->data_end = offset + size_bytes;
  ++open->writers;
  return slot;
}

// The medium is waited for without the mutex: others append to what is open meanwhile.
Result<void> Tier::open_segment(Queue queue, bool may_use_last) {
  renew_released();
  NEZHA_TRY(const SegmentPtr next, take_free(may_use_last));
  const Result<void> written = write_header(*next, queue);
  std::lock_guard lock(mutex_);
  if (written) {
    auto& open = open_[static_cast<size_t>(queue)];
    if (open) seal(std::move(open), queue);
    open = next;
  } else {
    free_.push_back(next);
  }
  count_free();
  return written;
}

void Tier::renew_released() {
  std::vector<SegmentPtr> released;
  {
    std::lock_guard lock(mutex_);
    if (!free_.empty()) return;
    released = take_released();
  }
  renew(std::move(released));
}

// Those that cannot be renewed stay out of service.
void Tier::renew(std::vector<SegmentPtr> released) {
  std::erase_if(released, [](const SegmentPtr& segment) { return !segment->bytes->renew(); });
  std::lock_guard lock(mutex_);
  free_.insert(free_.end(), released.begin(), released.end());
  count_free();
}

// A segment that is not in use, or a new one under the lowest number that is not used.
Result<Tier::SegmentPtr> Tier::take_free(bool may_use_last) {
  uint32_t number = 0;
  {
    std::lock_guard lock(mutex_);
    if (!growing_ && clock_.coarse_now() >= grow_again_at_) growing_ = true;
    const bool may_grow = growing_ && segment_count_ < segments_max_;
    const size_t left = free_.size() + (may_grow ? segments_max_ - segment_count_ : 0);
    if (left <= (may_use_last ? 0 : 1)) return fail(Remedy::kRetryLater, "the tier is full");
    if (!free_.empty()) {
      SegmentPtr next = std::move(free_.front());
      free_.pop_front();
      return next;
    }
    const auto hole = std::find(segments_.begin(), segments_.end(), nullptr);
    NEZHA_CHECK(hole != segments_.end(), "there are as many numbers as segments");
    number = static_cast<uint32_t>(hole - segments_.begin());
  }
  auto bytes = medium_->create(number, segment_bytes_);
  std::lock_guard lock(mutex_);
  if (!bytes) {  // no room on the device: go on with the segments there are
    growing_ = false;
    grow_again_at_ = clock_.coarse_now() + kGrowAgainAfter;
    growth_failure_ = bytes.error().message;
    count_free();
    return fail(Remedy::kRetryLater, bytes.error().message);
  }
  segments_[number] = std::make_shared<Segment>(number, std::move(bytes.value()));
  ++segment_count_;
  return segments_[number];
}

Result<void> Tier::write_header(Segment& segment, Queue queue) {
  segment.reset();
  {
    std::lock_guard lock(mutex_);
    segment.header = {next_sequence_++, segment_bytes_, static_cast<uint8_t>(queue)};
  }
  const auto encoded = format::encode_header(segment.header);
  const std::string_view header(encoded.data(), encoded.size());
  static constexpr std::array<char, format::kMagicBytes> kZeros{};
  NEZHA_TRY(segment.bytes->write(0, {kZeros.data(), kZeros.size()}));
  NEZHA_TRY(segment.bytes->write(format::kMagicBytes, header.substr(format::kMagicBytes)));
  return segment.bytes->write(0, header.substr(0, format::kMagicBytes));
}

void Tier::seal(SegmentPtr segment, Queue queue) {
  segment->sealed = true;
  count_if_dead(*segment);
  sealed_[static_cast<size_t>(queue)].push_back(std::move(segment));
}

void Tier::count_if_dead(Segment& segment) {
  if (segment.sealed && segment.live_records == 0 && !segment.counted_dead.exchange(true)) ++dead_segments_;
}

void Tier::uncount_dead(Segment& segment) {
  if (segment.counted_dead.exchange(false)) --dead_segments_;
}

void Tier::retain(const Place& place) {
  Segment& segment = *segments_[place.number()];
  if (segment.live_records++ == 0) uncount_dead(segment);
}

void Tier::release(const Place& place) {
  Segment& segment = *segments_[place.number()];
  if (--segment.live_records == 0) count_if_dead(segment);
}

// Reclaimed segments that the last reader has left.
std::vector<Tier::SegmentPtr> Tier::take_released() {
  std::vector<SegmentPtr> out;
  std::erase_if(released_, [&](SegmentPtr& segment) {
    if (segment.use_count() > 2) return false;
    std::atomic_thread_fence(std::memory_order_acquire);
    out.push_back(std::move(segment));
    return true;
  });
  return out;
}

// Data, then its descriptor, then the count: whoever finds the descriptor finds the data.
Result<void> Tier::write_record(const Slot& slot, const Record& record, std::string_view bytes) {
  Segment& segment = *slot.segment;
  if (!bytes.empty()) {
    NEZHA_TRY(segment.bytes->write(slot.offset, bytes));
  }
  const format::Descriptor descriptor{record, slot.offset, static_cast<uint32_t>(bytes.size()),
                                      format::data_checksum(bytes)};
  const auto encoded = format::encode_descriptor(descriptor, segment.header.sequence, slot.slot);
  NEZHA_TRY(
      segment.bytes->write(format::slot_offset(segment.size_bytes(), slot.slot), {encoded.data(), encoded.size()}));
  ++segment.records;
  std::lock_guard lock(segment.count_mutex);
  if (slot.slot < segment.counted_slots) return ok();
  const uint64_t word = format::encode_count(segment.header.sequence, slot.slot + 1);
  NEZHA_TRY(segment.bytes->write(format::kCountOffset, {reinterpret_cast<const char*>(&word), sizeof word}));
  segment.counted_slots = slot.slot + 1;
  return ok();
}

PinnedBytes Tier::pin(const Place& place) const {
  const SegmentPtr& segment = segments_[place.number()];
  const std::string_view data = segment->bytes->data();
  return {data.substr(place.offset_bytes(), place.size_bytes), segment, place, segment->bytes->file(), data.data()};
}

bool Tier::is_ready(const Place& place) const {
  const Segment& segment = *segments_[place.number()];
  if (!segment.is_verified(place.slot)) return false;
  return place.size_bytes == 0 || block_is_resident(segment, place);
}

bool Tier::block_is_resident(const Segment& segment, const Place& place) const {
  const auto now_s = static_cast<uint32_t>(
      std::chrono::duration_cast<std::chrono::seconds>(clock_.coarse_now().time_since_epoch()).count());
  const uint64_t begin = place.offset_bytes() / Segment::kBlockBytes;
  const uint64_t end = (place.offset_bytes() + place.size_bytes + Segment::kBlockBytes - 1) / Segment::kBlockBytes;
  for (uint64_t block = begin; block < end; ++block) {
    auto& until_s = segment.resident_until_s[block];
    if (until_s.load(std::memory_order_relaxed) > now_s) continue;
    const uint64_t from = block * Segment::kBlockBytes;
    const uint64_t size = std::min(Segment::kBlockBytes, segment.size_bytes() - from);
    if (!segment.bytes->is_resident(from, size)) {
      if (!segment.bytes->is_resident(place.offset_bytes(), place.size_bytes)) return false;
      // Read again: with its neighbours in memory as well, the next look is free. Tried once a second.
      if (until_s.exchange(now_s, std::memory_order_relaxed) != now_s) segment.bytes->prefetch(from, size);
      return true;
    }
    until_s.store(now_s + static_cast<uint32_t>(kResidentFor.count()), std::memory_order_relaxed);
  }
  return true;
}

void Tier::prefetch(const Place& place) const {
  segments_[place.number()]->bytes->prefetch(place.offset_bytes(), place.size_bytes);
}

Result<void> Tier::make_ready(const Place& place) {
  Segment& segment = *segments_[place.number()];
  if (place.size_bytes > 0) {
    NEZHA_TRY(segment.bytes->load(place.offset_bytes(), place.size_bytes));
  }
  // Whatever comes from the medium, or is about to be written anew, is compared: the cost is small beside that.
  NEZHA_TRY(segment.bytes->load(format::slot_offset(segment.size_bytes(), place.slot), format::kDescriptorBytes));
  const auto descriptor = format::decode_descriptor(segment.descriptor(place.slot), segment.header, place.slot);
  const std::string_view bytes = segment.bytes->data().substr(place.offset_bytes(), place.size_bytes);
  if (!descriptor || descriptor->size_bytes != place.size_bytes || descriptor->checksum != format::data_checksum(bytes))
    return fail(Remedy::kGiveUp, "stored bytes are damaged");
  segment.set_verified(place.slot);
  return ok();
}

std::optional<Tier::Victim> Tier::take_victim(Queue preferred) {
  std::lock_guard lock(mutex_);
  for (const bool dead : {true, false}) {
    if (dead && dead_segments_ == 0) continue;
    const auto suits = [&](const SegmentPtr& segment) {
      return segment.use_count() == 2 && segment->writers == 0 && (!dead || segment->live_records == 0);
    };
    for (const size_t queue : {static_cast<size_t>(preferred), 1 - static_cast<size_t>(preferred)}) {
      auto& sealed = sealed_[queue];
      const auto found = std::find_if(sealed.begin(), sealed.end(), suits);
      if (found == sealed.end()) continue;
      const Victim victim{(*found)->number, static_cast<Queue>(queue)};
      (*found)->sealed = false;
      uncount_dead(**found);
      sealed.erase(found);
      return victim;
    }
  }
  return std::nullopt;
}

void Tier::put_back(const Victim& victim) {
  std::lock_guard lock(mutex_);
  sealed_[static_cast<size_t>(victim.queue)].push_front(segments_[victim.number]);
  segments_[victim.number]->sealed = true;
  count_if_dead(*segments_[victim.number]);
}

void Tier::retire(const Victim& victim) {
  std::lock_guard lock(mutex_);
  retired_.push_back(segments_[victim.number]);
}

bool Tier::is_indexed(const Victim& victim) const { return segments_[victim.number]->live_records > 0; }

Result<void> Tier::visit_victim(const Victim& victim, const Visit& visit) {
  const Segment& segment = *segments_[victim.number];
  NEZHA_TRY(const uint32_t seen, visit_segment(segment, visit));
  if (seen < segment.records) return fail(Remedy::kGiveUp, "descriptors are damaged");
  return ok();
}

// How many there were.
Result<uint32_t> Tier::visit_segment(const Segment& segment, const Visit& visit, Which which) const {
  NEZHA_TRY(segment.load_descriptors(segment.slots));
  uint32_t seen = 0;
  for (uint32_t slot = 0; slot < segment.slots; ++slot) {
    if (which == Which::kTombstones && !format::may_be_tombstone(segment.descriptor(slot))) continue;
    const auto descriptor = format::decode_descriptor(segment.descriptor(slot), segment.header, slot);
    if (!descriptor) continue;
    ++seen;
    visit(descriptor->record,
          {static_cast<uint32_t>(id_) << 24 | segment.number, slot,
           static_cast<uint32_t>(descriptor->data_offset / format::kSmallAlignBytes), descriptor->size_bytes});
  }
  return seen;
}

bool Tier::tombstone_needed(const Record& tombstone, const Victim& victim) const {
  std::lock_guard lock(mutex_);
  return older_records(tombstone.offset, segments_[victim.number].get());
}

bool Tier::older_records(uint64_t up_to_sequence, const Segment* except) const {
  const auto older = [&](const SegmentPtr& segment) {
    return segment && segment.get() != except && segment->slots > 0 && segment->header.sequence <= up_to_sequence;
  };
  const auto any = [&](const auto& segments) { return std::any_of(segments.begin(), segments.end(), older); };
  return any(sealed_[0]) || any(sealed_[1]) || any(open_) || any(retired_);
}

Result<void> Tier::wipe(const Victim& victim) {
  SegmentBytes& bytes = *segments_[victim.number]->bytes;
  static constexpr std::array<char, format::kMagicBytes> kZeros{};
  NEZHA_TRY(bytes.write(0, {kZeros.data(), kZeros.size()}));
  return bytes.sync(0, format::kDataBegin);
}

void Tier::give_back(const Victim& victim) {
  const SegmentPtr& segment = segments_[victim.number];
  std::vector<SegmentPtr> released;
  {
    std::lock_guard lock(mutex_);
    segment->slots = 0;
    segment->data_end = format::kDataBegin;
    released_.push_back(segment);
    released = take_released();
  }
  renew(std::move(released));
}

bool Tier::abandon() {
  const std::scoped_lock lock(opening_mutex_, mutex_);  // no segment is made behind this
  if (abandoned_.exchange(true)) return true;
  bool removed = true;
  for (const auto& segment : segments_) {
    if (segment) removed &= medium_->remove(segment->number);
  }
  return removed;
}

uint64_t Tier::used_bytes() const { return queue_bytes(Queue::kProbation) + queue_bytes(Queue::kMain); }

uint64_t Tier::queue_bytes(Queue queue) const {
  std::lock_guard lock(mutex_);
  const auto index = static_cast<size_t>(queue);
  uint64_t total = open_[index] ? open_[index]->used_bytes() : 0;
  for (const auto& segment : sealed_[index]) total += segment->used_bytes();
  return total;
}

bool Tier::is_empty() const {
  std::lock_guard lock(mutex_);
  return segment_count_ == 0;
}

std::optional<std::string> Tier::take_growth_failure() {
  std::lock_guard lock(mutex_);
  return std::exchange(growth_failure_, std::nullopt);
}

bool Tier::has_free_segment() const {
  std::lock_guard lock(mutex_);
  return free_.size() + (growing_ ? segments_max_ - segment_count_ : 0) > 1;
}

void Tier::count_free() { free_segments_ = free_.size() + (growing_ ? segments_max_ - segment_count_ : 0); }

uint64_t Tier::free_bytes() const {
  const size_t left = free_segments_ + dead_segments_;
  return left > 1 ? (left - 1) * segment_bytes_ : 0;
}

}  // namespace nezha::cache
