#include "cli/yaml_scalar.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "nezha/base/text.h"

namespace nezha::cli {
namespace {

using Json = nlohmann::ordered_json;

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// YAML knows each word in lower case, capitalised and in upper case.
bool is_word(const std::string& text, std::initializer_list<std::string_view> words) {
  const std::string lower = to_lower(text);
  if (!is_one_of(lower, words)) return false;
  std::string capitalised = lower, upper = lower;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  capitalised[0] = upper[0];
  return text == lower || text == capitalised || text == upper;
}

// Digits in the base that the prefix names: 0x1f, 0b1, 0o17, 017, 1_000. Exact, or nothing.
std::optional<Json> integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  int base = 10;
  const auto prefix = text.substr(0, 2);
  if (prefix == "0x")
    base = 16;
  else if (prefix == "0b")
    base = 2;
  else if (prefix == "0o")
    base = 8;
  if (base != 10)
    text.remove_prefix(2);
  else if (text.size() > 1 && text[0] == '0')
    base = 8;
  std::string digits(text);
  std::erase(digits, '_');
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  if (!negative) return Json(value);
  if (value > uint64_t{1} << 63) return std::nullopt;
  return Json(static_cast<int64_t>(~value + 1));
}

// [-+]? ( .digits | digits [.digits*] ) [ e [-+]? digits ]
std::optional<Json> decimal(std::string_view text) {
  std::string_view number = text;
  if (number.starts_with('+') || number.starts_with('-')) number.remove_prefix(1);
  if (number.empty() || number.find_first_not_of("0123456789.eE+-") != std::string_view::npos) return std::nullopt;
  if (number[0] != '.' && (number[0] < '0' || number[0] > '9')) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return Json(value);
}

}  // namespace

Json plain_value(const std::string& text) {
  if (text.empty() || text == "~" || is_word(text, {"null"})) return nullptr;
  if (is_word(text, {"true", "yes", "on"})) return true;
  if (is_word(text, {"false", "no", "off"})) return false;
  if (const auto value = integer(text)) return *value;
  if (const auto value = decimal(text)) return *value;
  std::string_view unsigned_text = text;
  if (unsigned_text.starts_with('+') || unsigned_text.starts_with('-')) unsigned_text.remove_prefix(1);
  if (is_one_of(unsigned_text, {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})) return Json(Json::value_t::discarded);
  return text;
}

bool is_plain_string(const std::string& text) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  const std::string first = std::string(kLetters) + "/_";
  const std::string safe = first + "0123456789./:-=@+,;()$ ";
  if (text.empty() || first.find(text[0]) == std::string::npos) return false;
  if (text.find_first_not_of(safe) != std::string::npos || text.back() == ' ' || text.back() == ':') return false;
  if (text.find(": ") != std::string::npos || text.size() > 1000) return false;
  return !is_one_of(to_lower(text), {"null", "true", "false", "yes", "no", "on", "off", "y", "n"});
}

}  // namespace nezha::cli
