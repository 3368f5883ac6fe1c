// Percent-encoding and hexadecimal digits, as S3 writes them. Private to src/s3. Threads: any.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace nezha::s3 {

inline constexpr std::string_view kUpperDigits = "0123456789ABCDEF", kLowerDigits = "0123456789abcdef";

// The digit's value, or -1.
inline int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

inline std::string to_hex(std::span<const unsigned char> bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const unsigned char byte : bytes) {
    out += kLowerDigits[byte >> 4];
    out += kLowerDigits[byte & 15];
  }
  return out;
}

// A-Z a-z 0-9 - . _ ~ (RFC 3986 §2.3)
inline bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

// Every byte but the unreserved ones and those of `kept`.
std::string percent_encode(std::string_view text, std::string_view kept, std::string_view digits = kUpperDigits);

}  // namespace nezha::s3
