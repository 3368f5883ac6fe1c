// Fuzz target: a segment as an earlier process, or anything else, left it. Taken over, read in, looked at, reclaimed
// and written on: whatever lies there, records lie inside it, and bytes are used only when they are what was written.
// Input: a byte of mode. Even: a stream that makes descriptors of any content with the right checksums. Odd: bytes for
// the header's page and for the end of the segment as they are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cache/index/head_record.h"
#include "cache/index/index.h"
#include "nezha/base/check.h"
#include "test/support/faulty_medium.h"
#include "test/support/manual_clock.h"

namespace nezha::cache {
namespace {

constexpr uint64_t kSegment = 64 * 1024;
constexpr uint64_t kSequence = 5;

// Gives zeros at its end.
class Stream {
 public:
  explicit Stream(std::string_view bytes) : left_(bytes) {}
  template <class T>
  T number() {
    T value{};
    std::memcpy(&value, left_.data(), std::min(sizeof value, left_.size()));
    left_.remove_prefix(std::min(sizeof value, left_.size()));
    return value;
  }
  std::string_view take(size_t size) {
    const auto out = left_.substr(0, size);
    left_.remove_prefix(out.size());
    return out;
  }
  bool empty() const { return left_.empty(); }

 private:
  std::string_view left_;
};

template <class Bytes>
void put(std::string& segment, uint64_t offset, const Bytes& bytes) {
  const size_t size = std::min<size_t>(bytes.size(), segment.size() - offset);
  std::memcpy(segment.data() + offset, bytes.data(), size);
}

std::string made_segment(Stream in) {
  std::string segment(kSegment, '\0');
  put(segment, 0, format::encode_header({kSequence, kSegment, in.number<uint8_t>()}));
  uint64_t data_end = format::kDataBegin;
  uint32_t slot = 0;
  for (; !in.empty() && slot < 200; ++slot) {
    format::Descriptor descriptor;
    const auto flags = in.number<uint8_t>();
    descriptor.record.kind = static_cast<RecordKind>(flags & 7);
    descriptor.record.key = {in.number<uint8_t>(), in.number<uint8_t>()};
    descriptor.record.generation = in.number<uint8_t>();
    descriptor.record.offset = in.number<uint16_t>();
    const auto data = in.take(in.number<uint8_t>());
    descriptor.data_offset = flags & 8 ? in.number<uint32_t>() * uint64_t{64} : data_end;
    descriptor.size_bytes = flags & 16 ? in.number<uint32_t>() : static_cast<uint32_t>(data.size());
    descriptor.checksum = flags & 32 ? in.number<uint64_t>() : format::data_checksum(data);
    if (data_end + data.size() < kSegment / 2) put(segment, data_end, data);
    data_end += (data.size() + 63) / 64 * 64;
    if (flags & 64) continue;  // a slot whose writer died
    put(segment, format::slot_offset(kSegment, slot), format::encode_descriptor(descriptor, kSequence, slot));
  }
  const uint64_t count = format::encode_count(kSequence, slot);
  std::memcpy(segment.data() + format::kCountOffset, &count, sizeof count);
  return segment;
}

std::string raw_segment(std::string_view bytes) {
  std::string segment(kSegment, '\0');
  put(segment, 0, bytes.substr(0, 72));
  const auto rest = bytes.substr(std::min<size_t>(bytes.size(), 72)).substr(0, kSegment / 2);
  put(segment, kSegment - rest.size(), rest);
  return segment;
}

void look(Tier& tier) {
  Index index({&tier}, 1 << 20);
  std::vector<std::pair<Record, Place>> records;
  NEZHA_CHECK(
      tier.visit_recovered([&](const Record& record, const Place& place) { records.emplace_back(record, place); }),
      "memory can be read");
  for (const auto& [record, place] : records) {
    const bool tombstone = record.kind == RecordKind::kPathTombstone || record.kind == RecordKind::kGenerationTombstone;
    if (tombstone)
      index.recover_tombstone(record);
    else if (place.size_bytes > 0 || record.kind == RecordKind::kHead)
      index.recover(record, place);
  }
  index.finish_recovery();
  for (const auto& [record, place] : records) {
    NEZHA_CHECK(place.size_bytes == 0 || place.offset_bytes() + place.size_bytes <= kSegment, "inside the segment");
    if (record.kind == RecordKind::kHead && tier.make_ready(place)) {
      const auto head = decode_head(tier.pin(place).bytes, record.generation);
      if (head) index.set_decoded(record.key, place, head.value());
    }
    (void)index.entries(record.key);
    (void)index.pin(record.key, record.generation, {record.offset, record.offset + place.size_bytes});
    (void)index.missing(record.key, record.generation, {0, 1000});
    (void)index.liveness(record, place);
  }
  while (const auto victim = tier.take_victim(Queue::kMain)) {
    NEZHA_CHECK(tier.visit_victim(*victim,
                                  [&](const Record& record, const Place& place) {
                                    if (record.kind == RecordKind::kHead || record.kind == RecordKind::kExtent)
                                      (void)index.forget(record, place, true);
                                  }),
                "nothing changed meanwhile");
    NEZHA_CHECK(!tier.is_indexed(*victim), "the index knows only what can be visited");
    NEZHA_CHECK(tier.wipe(*victim), "memory can be written");
    tier.give_back(*victim);
  }
  NEZHA_CHECK(index.generation_count() == 0, "all of it was forgotten");
}

}  // namespace
}  // namespace nezha::cache

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nezha;
  using namespace nezha::cache;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  test::TestDisk disk;
  disk.put(0, data[0] % 2 ? raw_segment(bytes) : made_segment(Stream(bytes)));
  const test::ManualClock clock;
  auto tier = Tier::open(disk.medium(), {0, 16 * kSegment, kSegment}, clock);
  NEZHA_CHECK(tier.has_value(), "whatever lies there, a tier can be opened");
  look(*tier.value());
  for (const auto queue : {Queue::kProbation, Queue::kMain}) {
    const auto appended = tier.value()->append(queue, {}, "new");
    NEZHA_CHECK(appended && appended.value().bytes.bytes == "new", "and written");
  }
  return 0;
}
