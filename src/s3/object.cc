#include "nezha/s3/object.h"

#include <algorithm>
#include <array>

namespace nezha::s3 {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool is_unreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~' || c == '/';
}

// `kept`: what is left as it is, beside the unreserved.
std::string encode(std::string_view key, std::string_view kept, std::string_view digits) {
  std::string out;
  for (const char c : key) {
    if (is_unreserved(c) || kept.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += digits[byte >> 4];
    out += digits[byte & 15];
  }
  return out;
}

}  // namespace

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
    if (low < 0) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

std::vector<std::string> spellings(const ObjectKey& key) {
  constexpr std::string_view kUpper = "0123456789ABCDEF", kLower = "0123456789abcdef";
  constexpr std::array<std::string_view, 5> kKept = {"", "$&+,:;=@", "!'()*", "!$&'()*+,:;=@",
                                                     "!$&'()*+,:;=@[]|^`{}\"<>\\"};
  std::vector<std::string> out;
  const auto add = [&](std::string spelling) {
    if (std::find(out.begin(), out.end(), spelling) == out.end()) out.push_back(std::move(spelling));
  };
  for (const auto kept : kKept) add(encode(key.get(), kept, kUpper));
  add(encode(key.get(), "", kLower));
  return out;
}

}  // namespace nezha::s3
