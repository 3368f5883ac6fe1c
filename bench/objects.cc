#include "bench/objects.h"

#include <algorithm>
#include <charconv>
#include <functional>

namespace nezha::bench {
namespace {

// A prime, so that a piece taken from a wrong block of 4 KiB or 1 MiB has wrong bytes.
constexpr uint64_t kPeriod = 1'048'573;

const std::string& pattern() {
  static const std::string bytes = [] {
    std::string made(kPeriod + kPieceMax, '\0');
    uint64_t state = 0x9e3779b97f4a7c15;
    for (uint64_t i = 0; i < kPeriod; ++i) {
      state ^= state << 13;
      state ^= state >> 7;
      state ^= state << 17;
      made[i] = static_cast<char>(state);
    }
    std::copy_n(made.begin(), kPieceMax, made.begin() + kPeriod);
    return made;
  }();
  return bytes;
}

}  // namespace

std::optional<Object> object_of(std::string_view path) {
  constexpr std::string_view kPrefix = "/o/";
  if (!path.starts_with(kPrefix)) return std::nullopt;
  Object object;
  const char* end = path.data() + path.size();
  const auto read = std::from_chars(path.data() + kPrefix.size(), end, object.size_bytes);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != '/') return std::nullopt;
  object.seed = std::hash<std::string_view>{}(path);
  return object;
}

std::string_view bytes_at(const Object& object, uint64_t offset, uint64_t size_max) {
  const uint64_t size = std::min({size_max, kPieceMax, object.size_bytes - std::min(offset, object.size_bytes)});
  return std::string_view(pattern()).substr((object.seed % kPeriod + offset) % kPeriod, size);
}

std::string etag_of(const Object& object) {
  return "\"" + std::to_string(object.size_bytes) + "-" + std::to_string(object.seed) + "\"";
}

}  // namespace nezha::bench
