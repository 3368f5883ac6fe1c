// A short, stable name for a text: the same in every replica and version. Not for security. Pure.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nezha::webhook {

// FNV-1a, 64 bits, as 16 hex digits.
inline std::string short_hash(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += kHex[(hash >> shift) & 15];
  return out;
}

}  // namespace nezha::webhook
