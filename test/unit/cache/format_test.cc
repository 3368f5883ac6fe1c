// The bytes on a medium: they are what docs/formats.md says, they come back as they went, and no other use of a
// segment, no other slot and no flipped bit is ever taken for them.
#include "cache/tier/format.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>

namespace nezha::cache::format {
namespace {

constexpr SegmentHeader kSegment{7, 1 << 20, 1};
constexpr Descriptor kExtent{
    {RecordKind::kExtent, {0x1122334455667788, 0x99aabbccddeeff00}, 42, 1 << 21}, 8192, 300, 0x0123456789abcdef};

template <class Bytes>
std::string_view view(const Bytes& bytes) {
  return {bytes.data(), bytes.size()};
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const unsigned char c : bytes) {
    char two[3];
    std::snprintf(two, sizeof two, "%02x", c);
    out += two;
  }
  return out;
}

TEST(Format, HeaderComesBack) {
  const auto bytes = encode_header(kSegment);
  SegmentHeader out;
  ASSERT_EQ(decode_header(view(bytes), out), HeaderState::kValid);
  EXPECT_EQ(out.sequence, 7u);
  EXPECT_EQ(out.segment_bytes, uint64_t{1} << 20);
  EXPECT_EQ(out.queue, 1u);
}

TEST(Format, DescriptorComesBack) {
  for (const auto kind :
       {RecordKind::kHead, RecordKind::kExtent, RecordKind::kPathTombstone, RecordKind::kGenerationTombstone}) {
    Descriptor descriptor = kExtent;
    descriptor.record.kind = kind;
    const auto bytes = encode_descriptor(descriptor, 7, 3);
    const auto out = decode_descriptor(view(bytes), kSegment, 3);
    ASSERT_TRUE(out);
    EXPECT_EQ(out->record, descriptor.record);
    EXPECT_EQ(out->data_offset, 8192u);
    EXPECT_EQ(out->size_bytes, 300u);
    EXPECT_EQ(out->checksum, 0x0123456789abcdefu);
  }
}

// Who changes these bytes changes the version too: segments of an older one are then set aside.
TEST(Format, GoldenBytes) {
  EXPECT_EQ(kVersion, 1u);
  EXPECT_EQ(hex(view(encode_header(kSegment))),
            "4e455a48415345470100000000000000070000000000000000001000000000000100000000000000"
            "000000000000000000000000000000002b25996ebcbec23e");
  EXPECT_EQ(hex(view(encode_descriptor(kExtent, 7, 3))),
            "887766554433221100ffeeddccbbaa992a000000000000000000200000000000efcdab8967452301"
            "800000002c0100000200000000000000293bcf4c391229a2");
  EXPECT_EQ(encode_count(7, 3), uint64_t{7} << 32 | 3);
  EXPECT_EQ(data_checksum("Nezha"), 9758741156335362356u);
}

TEST(Format, EveryFlippedBitOfAHeaderIsRefused) {
  const auto good = encode_header(kSegment);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    SegmentHeader out;
    const auto state = decode_header(view(bytes), out);
    EXPECT_TRUE(state == HeaderState::kDamaged || state == HeaderState::kForeign) << "bit " << bit;
  }
}

TEST(Format, EveryFlippedBitOfADescriptorIsRefused) {
  const auto good = encode_descriptor(kExtent, 7, 3);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bytes = good;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode_descriptor(view(bytes), kSegment, 3)) << "bit " << bit;
  }
}

TEST(Format, AnotherUseOrSlotIsRefused) {
  const auto bytes = encode_descriptor(kExtent, 7, 3);
  for (uint64_t sequence = 0; sequence < 1000; ++sequence) {
    for (uint32_t slot = 0; slot < 20; ++slot) {
      SegmentHeader segment = kSegment;
      segment.sequence = sequence;
      EXPECT_EQ(decode_descriptor(view(bytes), segment, slot).has_value(), sequence == 7 && slot == 3);
    }
  }
  EXPECT_EQ(decode_count(7, encode_count(7, 5)), 5u);
  EXPECT_EQ(decode_count(8, encode_count(7, 5)), 0u);
}

TEST(Format, DataOutsideTheSegmentIsRefused) {
  const auto decodes = [](uint64_t data_offset, uint32_t size_bytes) {
    Descriptor descriptor = kExtent;
    descriptor.data_offset = data_offset;
    descriptor.size_bytes = size_bytes;
    return decode_descriptor(view(encode_descriptor(descriptor, 7, 3)), kSegment, 3).has_value();
  };
  const uint64_t end = slot_offset(kSegment.segment_bytes, 3);
  EXPECT_TRUE(decodes(kDataBegin, 1));
  EXPECT_FALSE(decodes(kDataBegin - 64, 1)) << "over the header";
  EXPECT_TRUE(decodes(end - 128, 128));
  EXPECT_FALSE(decodes(end - 128, 129)) << "over its own descriptor";
  EXPECT_FALSE(decodes(uint64_t{1} << 37, 1));
  EXPECT_FALSE(decodes(kDataBegin, UINT32_MAX));
  EXPECT_TRUE(decodes(0, 0)) << "no data";
  EXPECT_FALSE(decodes(uint64_t{1} << 37, 0)) << "none, and not there";
}

TEST(Format, HeadersThatAreNotThere) {
  SegmentHeader out;
  HeaderBytes bytes{};
  EXPECT_EQ(decode_header(view(bytes), out), HeaderState::kEmpty);
  EXPECT_EQ(out.sequence, 0u);
  // Given back: the magic is gone, the sequence number stays.
  bytes = encode_header(kSegment);
  std::memset(bytes.data(), 0, kMagicBytes);
  EXPECT_EQ(decode_header(view(bytes), out), HeaderState::kEmpty);
  EXPECT_EQ(out.sequence, 7u);
  // Torn while it was written anew: nothing is there, and nothing is known.
  auto torn = encode_header({8, 1 << 20, 0});
  std::memset(torn.data(), 0, kMagicBytes);
  std::memcpy(torn.data() + 32, bytes.data() + 32, 32);
  EXPECT_EQ(decode_header(view(torn), out), HeaderState::kUnfinished);
  EXPECT_EQ(out.sequence, 0u);
}

}  // namespace
}  // namespace nezha::cache::format
