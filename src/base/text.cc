#include "nezha/base/text.h"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace nezha {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }
bool is_alnum_lower(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

// Factor of a Kubernetes quantity suffix, 0 for an unknown one.
double size_factor(std::string_view suffix) {
  if (suffix.empty()) return 1;
  const bool binary = suffix.size() == 2 && suffix[1] == 'i';
  if (suffix.size() != 1 && !binary) return 0;
  constexpr std::string_view kOrder = "kMGTPE";
  const char letter = binary && suffix[0] == 'K' ? 'k' : suffix[0];
  const size_t power = kOrder.find(letter);
  if (power == std::string_view::npos || (binary && suffix[0] == 'k')) return 0;
  return std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

uint8_t byte_at(std::string_view text, size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : 0; }
bool is_continuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

std::string to_lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

bool iequals(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  for (size_t end; (end = text.find(separator, begin)) != std::string_view::npos; begin = end + 1)
    pieces.push_back(text.substr(begin, end - begin));
  pieces.push_back(text.substr(begin));
  return pieces;
}

std::optional<uint64_t> parse_decimal(std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<uint64_t> parse_size_bytes(std::string_view text) {
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const double factor = size_factor(text.substr(digits));
  if (digits == 0 || factor == 0) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + digits, number, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + digits) return std::nullopt;
  const double bytes = number * factor;
  if (bytes >= 9.2e18) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::optional<int64_t> parse_duration_s(std::string_view text) {
  if (text.empty()) return std::nullopt;
  int64_t factor = 1;
  switch (text.back()) {
    case 's':
      break;
    case 'm':
      factor = 60;
      break;
    case 'h':
      factor = 3600;
      break;
    case 'd':
      factor = 86400;
      break;
    default:
      factor = 0;
  }
  if (factor != 0) text.remove_suffix(1);
  const auto number = parse_decimal(text);
  constexpr uint64_t kMaxSeconds = 1'000'000'000;  // about 31 years: sums with it never overflow
  if (!number || *number > kMaxSeconds) return std::nullopt;
  const int64_t seconds = static_cast<int64_t>(*number) * (factor == 0 ? 1 : factor);
  return seconds > static_cast<int64_t>(kMaxSeconds) ? std::nullopt : std::optional(seconds);
}

bool is_dns1123_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  for (const auto label : split(text, '.')) {
    if (label.empty() || label.size() > 63) return false;
    if (!is_alnum_lower(label.front()) || !is_alnum_lower(label.back())) return false;
    if (!std::all_of(label.begin(), label.end(), [](char c) { return is_alnum_lower(c) || c == '-'; })) return false;
  }
  return true;
}

size_t utf8_length(std::string_view text, size_t at) {
  const uint8_t lead = byte_at(text, at);
  const uint8_t second = byte_at(text, at + 1);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4 || !is_continuation(second)) return 0;
  if (lead < 0xE0) return 2;
  if (!is_continuation(byte_at(text, at + 2))) return 0;
  if (lead == 0xE0 && second < 0xA0) return 0;
  if (lead == 0xED && second > 0x9F) return 0;
  if (lead < 0xF0) return 3;
  if (!is_continuation(byte_at(text, at + 3))) return 0;
  if (lead == 0xF0 && second < 0x90) return 0;
  if (lead == 0xF4 && second > 0x8F) return 0;
  return 4;
}

std::string printable(std::string_view text, size_t bytes_max) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = utf8_length(text, at);
    const size_t step = std::max<size_t>(length, 1);
    if (at + step > bytes_max) return out + "…";
    const bool control = length == 1 && (static_cast<uint8_t>(text[at]) < 0x20 || text[at] == 0x7F);
    if (length == 0) {
      out += "\uFFFD";
    } else if (control) {
      out += '?';
    } else {
      out += text.substr(at, length);
    }
    at += step;
  }
  return out;
}

std::optional<std::string> canonical_ip(std::string_view text) {
  const std::string copy(text);
  char buffer[INET6_ADDRSTRLEN];
  unsigned char address[sizeof(in6_addr)];
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, copy.c_str(), address) != 1) continue;
    if (inet_ntop(family, address, buffer, sizeof buffer)) return std::string(buffer);
  }
  return std::nullopt;
}

}  // namespace nezha
