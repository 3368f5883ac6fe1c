#include "nezha/s3/object.h"

#include <algorithm>
#include <array>

#include "src/s3/percent.h"

namespace nezha::s3 {

std::string percent_encode(std::string_view text, std::string_view kept, std::string_view digits) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
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
  constexpr std::array<std::string_view, 5> kKept = {"/", "/$&+,:;=@", "/!'()*", "/!$&'()*+,:;=@",
                                                     "/!$&'()*+,:;=@[]|^`{}\"<>\\"};
  std::vector<std::string> out;
  const auto add = [&](std::string spelling) {
    if (std::find(out.begin(), out.end(), spelling) == out.end()) out.push_back(std::move(spelling));
  };
  for (const auto kept : kKept) add(percent_encode(key.get(), kept));
  add(percent_encode(key.get(), "/", kLowerDigits));
  return out;
}

}  // namespace nezha::s3
