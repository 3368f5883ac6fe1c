#include "cache/tier/format.h"

#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the same hashes, by the widest vectors of this CPU
#endif

#include <cstring>

namespace nezha::cache::format {
namespace {

constexpr char kMagic[8] = {'N', 'E', 'Z', 'H', 'A', 'S', 'E', 'G'};

struct RawHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved0;
  uint64_t sequence;
  uint64_t segment_bytes;
  uint8_t queue;
  uint8_t reserved1[23];
  uint64_t checksum;
};
static_assert(sizeof(RawHeader) == sizeof(HeaderBytes));

struct RawDescriptor {
  uint64_t path_hash;
  uint64_t query_hash;
  uint64_t generation;
  uint64_t offset;
  uint64_t data_checksum;
  uint32_t data_offset_units;  // of 64 bytes
  uint32_t size_bytes;
  uint8_t kind;
  uint8_t reserved0[3];
  uint32_t owner;  // 0; kept for budgets per tenant
  uint64_t checksum;
};
static_assert(sizeof(RawDescriptor) == kDescriptorBytes);

uint64_t header_checksum(const RawHeader& raw) { return XXH3_64bits(&raw, offsetof(RawHeader, checksum)); }

uint64_t descriptor_checksum(const RawDescriptor& raw, uint64_t sequence, uint32_t slot) {
  return XXH3_64bits_withSeed(&raw, offsetof(RawDescriptor, checksum), sequence * 0x9E3779B97F4A7C15u + slot);
}

bool is_kind(uint8_t kind) {
  return kind >= static_cast<uint8_t>(RecordKind::kHead) &&
         kind <= static_cast<uint8_t>(RecordKind::kGenerationTombstone);
}

}  // namespace

HeaderBytes encode_header(const SegmentHeader& header) {
  RawHeader raw{};
  std::memcpy(raw.magic, kMagic, sizeof kMagic);
  raw.version = kVersion;
  raw.sequence = header.sequence;
  raw.segment_bytes = header.segment_bytes;
  raw.queue = header.queue;
  raw.checksum = header_checksum(raw);
  HeaderBytes out;
  std::memcpy(out.data(), &raw, sizeof raw);
  return out;
}

HeaderState decode_header(std::string_view bytes, SegmentHeader& out) {
  RawHeader raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  static constexpr RawHeader kZero{};
  out = {};
  if (std::memcmp(&raw, &kZero, sizeof raw) == 0) return HeaderState::kEmpty;
  const bool given_back = std::memcmp(raw.magic, kZero.magic, sizeof raw.magic) == 0;
  if (given_back) {
    std::memcpy(raw.magic, kMagic, sizeof kMagic);
    if (raw.version != kVersion || raw.checksum != header_checksum(raw)) return HeaderState::kUnfinished;
    out = {raw.sequence, raw.segment_bytes, raw.queue};
    return HeaderState::kEmpty;
  }
  if (std::memcmp(raw.magic, kMagic, sizeof kMagic) != 0 || raw.version != kVersion) return HeaderState::kForeign;
  if (raw.checksum != header_checksum(raw)) return HeaderState::kDamaged;
  out = {raw.sequence, raw.segment_bytes, raw.queue};
  return HeaderState::kValid;
}

uint64_t encode_count(uint64_t sequence, uint32_t slots) { return sequence << 32 | slots; }

uint32_t decode_count(uint64_t sequence, uint64_t word) {
  return word >> 32 == (sequence & 0xFFFFFFFFu) ? static_cast<uint32_t>(word) : 0;
}

DescriptorBytes encode_descriptor(const Descriptor& descriptor, uint64_t sequence, uint32_t slot) {
  RawDescriptor raw{};
  raw.path_hash = descriptor.record.key.path;
  raw.query_hash = descriptor.record.key.query;
  raw.generation = descriptor.record.generation;
  raw.offset = descriptor.record.offset;
  raw.data_checksum = descriptor.checksum;
  raw.data_offset_units = static_cast<uint32_t>(descriptor.data_offset / kSmallAlignBytes);
  raw.size_bytes = descriptor.size_bytes;
  raw.kind = static_cast<uint8_t>(descriptor.record.kind);
  raw.checksum = descriptor_checksum(raw, sequence, slot);
  DescriptorBytes out;
  std::memcpy(out.data(), &raw, sizeof raw);
  return out;
}

std::optional<Descriptor> decode_descriptor(std::string_view bytes, const SegmentHeader& segment, uint32_t slot) {
  RawDescriptor raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  if (raw.checksum != descriptor_checksum(raw, segment.sequence, slot) || !is_kind(raw.kind)) return std::nullopt;
  const uint64_t data_offset = static_cast<uint64_t>(raw.data_offset_units) * kSmallAlignBytes;
  if (raw.size_bytes > 0 && data_offset < kDataBegin) return std::nullopt;
  if (data_offset + raw.size_bytes > slot_offset(segment.segment_bytes, slot)) return std::nullopt;
  return Descriptor{{static_cast<RecordKind>(raw.kind), {raw.path_hash, raw.query_hash}, raw.generation, raw.offset},
                    data_offset,
                    raw.size_bytes,
                    raw.data_checksum};
}

bool may_be_tombstone(std::string_view descriptor) {
  const auto kind = static_cast<RecordKind>(descriptor[offsetof(RawDescriptor, kind)]);
  return kind == RecordKind::kPathTombstone || kind == RecordKind::kGenerationTombstone;
}

uint64_t data_checksum(std::string_view data) { return XXH3_64bits(data.data(), data.size()); }

}  // namespace nezha::cache::format
