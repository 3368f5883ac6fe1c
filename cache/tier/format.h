// format: what lies on a tier's medium, byte for byte (docs/formats.md). Pure.
// A segment: its header in the first page, data from there upwards, one descriptor per record from the end downwards.
// A descriptor vouches for itself: its checksum covers the segment's sequence number and its own slot, so what an
// earlier use of the segment left behind is never taken for a record. Integers are little-endian.
// Threads: any.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace nezha::cache {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is written as it lies in memory");

// 128 bits that stand for where an object is stored; the head record holds the text, which is compared.
struct KeyHash {
  uint64_t path = 0;   // of "host[:port]/raw/path"
  uint64_t query = 0;  // of the query, seeded with the path's
  friend bool operator==(const KeyHash&, const KeyHash&) = default;
};

enum class RecordKind : uint8_t {
  kHead = 1,                 // a stored response without its bytes; the latest of a generation counts
  kExtent = 2,               // bytes of a generation from `offset` on
  kPathTombstone = 3,        // no generation of this path up to `generation` may be served again
  kGenerationTombstone = 4,  // nor this one
};

// What a record is, besides its bytes.
struct Record {
  RecordKind kind = RecordKind::kExtent;
  KeyHash key;
  uint64_t generation = 0;
  uint64_t offset = 0;  // kExtent: of the representation; kHead: counts the revisions of the head
  friend bool operator==(const Record&, const Record&) = default;
};

inline bool is_tombstone(const Record& record) {
  return record.kind == RecordKind::kPathTombstone || record.kind == RecordKind::kGenerationTombstone;
}

namespace format {

inline constexpr uint32_t kVersion = 1;
inline constexpr uint64_t kDataBegin = 4096;  // the header's page
inline constexpr uint64_t kDescriptorBytes = 64;
inline constexpr uint64_t kSmallAlignBytes = 64;  // of records below a page
inline constexpr uint64_t kPageBytes = 4096;      // of the others
inline constexpr uint64_t kCountOffset = 64;      // of the slot count's word in the header's page

struct SegmentHeader {
  uint64_t sequence = 0;  // raised each time a segment of the tier is opened; 0: never opened
  uint64_t segment_bytes = 0;
  uint8_t queue = 0;
};
using HeaderBytes = std::array<char, 64>;
HeaderBytes encode_header(const SegmentHeader& header);

// A header is written behind its first 8 bytes, and these come last, by one store: whoever dies in between leaves zeros
// there. A segment is given back by zeros there too; its sequence number stays to be read, so that it is never given
// to the same bytes again.
inline constexpr uint64_t kMagicBytes = 8;

enum class HeaderState {
  kValid,
  kEmpty,       // never used, or given back: then the sequence number is that of its last use
  kUnfinished,  // about to be used when the process ended: it holds nothing
  kDamaged,     // ours, but its checksum does not fit: nothing in it can be trusted
  kForeign,     // not ours, or of another version: to be left as it is
};
// REQUIRES: at least 64 bytes.
HeaderState decode_header(std::string_view bytes, SegmentHeader& out);

// The number of slots in use, bound to the segment's sequence so that an earlier use does not count. It says where to
// look; what is there must vouch for itself, and behind the last one counted too.
uint64_t encode_count(uint64_t sequence, uint32_t slots);
uint32_t decode_count(uint64_t sequence, uint64_t word);

struct Descriptor {
  Record record;
  uint64_t data_offset = 0;  // in the segment
  uint32_t size_bytes = 0;
  uint64_t checksum = 0;  // of the data
};
using DescriptorBytes = std::array<char, kDescriptorBytes>;
DescriptorBytes encode_descriptor(const Descriptor& descriptor, uint64_t sequence, uint32_t slot);
// Nothing when the slot holds no record of this use of the segment, or one that does not fit into it.
// REQUIRES: 64 bytes.
std::optional<Descriptor> decode_descriptor(std::string_view bytes, const SegmentHeader& segment, uint32_t slot);
// False: it does not decode to one, whatever its checksum says.
bool may_be_tombstone(std::string_view descriptor);

inline uint64_t slot_offset(uint64_t segment_bytes, uint32_t slot) {
  return segment_bytes - (static_cast<uint64_t>(slot) + 1) * kDescriptorBytes;
}
uint64_t data_checksum(std::string_view data);

}  // namespace format
}  // namespace nezha::cache
