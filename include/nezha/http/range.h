// Range and Content-Range (RFC 9110 §14). 64-bit throughout. Pure. Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nezha::http {

// A half-open piece of a representation: [begin, end).
struct ByteRange {
  uint64_t begin = 0;
  uint64_t end = 0;
  uint64_t size_bytes() const { return end - begin; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// One member of `Range: bytes=…`, before the representation's length is known.
struct RangeSpec {
  std::optional<uint64_t> first;  // absent: a suffix range, `last` is its length
  std::optional<uint64_t> last;   // absent: open, to the end
  // The bytes asked for; nothing when the range cannot be satisfied for this length.
  std::optional<ByteRange> resolve(uint64_t total_bytes) const;
  friend bool operator==(const RangeSpec&, const RangeSpec&) = default;
};

// The members of a Range value in bytes units. Nothing when it is malformed or in another unit: the field is then
// ignored (RFC 9110 §14.2).
std::optional<std::vector<RangeSpec>> parse_range(std::string_view value);

struct ContentRange {
  std::optional<ByteRange> range;       // absent: `bytes */N`, an unsatisfied range
  std::optional<uint64_t> total_bytes;  // absent: `*`, not known
};
std::optional<ContentRange> parse_content_range(std::string_view value);
// `total_bytes` absent: `*`.
std::string format_content_range(ByteRange range, std::optional<uint64_t> total_bytes);

}  // namespace nezha::http
