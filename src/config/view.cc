// Typed reads of a Node and the messages for everything that can be wrong with one. See view.h.
#include "src/config/view.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "nezha/base/text.h"

namespace nezha::config {
namespace {

std::string_view kind_name(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kNull:
      return "empty";
    case Node::Kind::kText:
      return "a single value";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kMap:
      return "a map";
  }
  return "unknown";
}

// What YAML makes of an unquoted scalar, in the reading of Kubernetes' own tools (YAML 1.1 booleans included).
enum class PlainType { kText, kBoolean, kNumber };

bool is_number(std::string_view text) {
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  if (text == ".inf" || text == ".nan") return true;
  if (text.substr(0, 2) == "0x") return text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos;
  const size_t dots = static_cast<size_t>(std::count(text.begin(), text.end(), '.'));
  const size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (digits == dots || dots > 1) return false;  // no digit before the exponent, or an address
  if (digits == text.size()) return true;
  if (text[digits] != 'e' && text[digits] != 'E') return false;
  text.remove_prefix(digits + 1);
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

PlainType plain_type(std::string_view text) {
  const std::string lower = to_lower(text);
  for (const std::string_view word : {"true", "false", "yes", "no", "on", "off"})
    if (lower == word) return PlainType::kBoolean;
  return is_number(text) ? PlainType::kNumber : PlainType::kText;
}

// Number of insertions, deletions and substitutions between two short words.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t substituted = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row[b.size()];
}

// The known word a typing mistake away from `word`, or nothing.
std::string_view nearest(std::string_view word, std::initializer_list<std::string_view> known) {
  constexpr size_t kWordMax = 40;
  std::string_view best;
  size_t best_distance = 3;
  if (word.size() > kWordMax) return best;
  for (const std::string_view candidate : known) {
    const size_t distance = edit_distance(to_lower(word), to_lower(candidate));
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, std::initializer_list<std::string_view> known) {
  const std::string_view best = nearest(word, known);
  return best.empty() ? "write " + any_of_words(known) : "did you mean " + std::string(best) + "?";
}

std::optional<uint16_t> parse_port(std::string_view text) {
  const auto number = parse_decimal(text);
  if (!number || *number > std::numeric_limits<uint16_t>::max()) return std::nullopt;
  return static_cast<uint16_t>(*number);
}

struct HostPort {
  std::string_view host;
  std::optional<std::string_view> port;
};

// "h:p", "h", "[v6]:p", "[v6]", bare "v6".
HostPort split_address(std::string_view text) {
  const bool bracket = !text.empty() && text[0] == '[';
  const size_t close = text.find(']');
  if (bracket && close != std::string_view::npos) {
    const std::string_view after = text.substr(close + 1);
    if (after.empty()) return {text.substr(1, close - 1), std::nullopt};
    if (after[0] == ':') return {text.substr(1, close - 1), after.substr(1)};
    return {text, std::nullopt};
  }
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || text.find(':', colon + 1) != std::string_view::npos)
    return {text, std::nullopt};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

}  // namespace

std::string any_of_words(std::initializer_list<std::string_view> words) {
  std::string out;
  size_t left = words.size();
  for (const std::string_view word : words) {
    out += word;
    --left;
    if (left > 0) out += left == 1 ? " or " : ", ";
  }
  return out;
}

Result<> View::expect_map(std::initializer_list<std::string_view> known) const {
  if (!is_map()) {
    const char* const keys = known.size() == 1 ? "; write a map with the key " : "; write a map with the keys ";
    return error("is " + std::string(kind_name(node_->kind)) + keys + any_of_words(known));
  }
  for (const Node& child : node_->children) {
    if (std::find(known.begin(), known.end(), child.key) != known.end()) continue;
    return View(child, source_, child_path(path_, child.key))
        .error("is an unknown key; " + suggestion(child.key, known));
  }
  return ok();
}

Result<std::vector<View>> View::members() const {
  if (!is_map()) return error("is " + std::string(kind_name(node_->kind)) + "; write a map of KEY: VALUE");
  std::vector<View> out;
  for (const Node& child : node_->children) out.push_back(View(child, source_, child_path(path_, child.key)));
  return out;
}

Result<std::vector<View>> View::items(size_t count_max) const {
  if (node_->kind != Node::Kind::kList)
    return error("is " + std::string(kind_name(node_->kind)) + "; write a list: [A, B]");
  const size_t count = node_->children.size();
  if (count > count_max) {
    return error("has " + std::to_string(count) + " items; at most " + std::to_string(count_max) + " are allowed");
  }
  std::vector<View> out;
  out.reserve(count);
  for (size_t i = 0; i < count; ++i) out.push_back(View(node_->children[i], source_, item_path(path_, i)));
  return out;
}

std::optional<View> View::find(std::string_view key) const {
  for (const Node& child : node_->children) {
    if (child.key != key) continue;
    if (child.kind == Node::Kind::kNull) return std::nullopt;
    return View(child, source_, child_path(path_, key));
  }
  return std::nullopt;
}

Result<View> View::require(std::string_view key, std::string_view example) const {
  if (auto view = find(key)) return *view;
  return error("has no " + std::string(key) + "; add for example " + std::string(key) + ": " + std::string(example));
}

Result<std::string> View::scalar() const {
  if (node_->kind != Node::Kind::kText) {
    return error("is " + std::string(kind_name(node_->kind)) + "; write a single value");
  }
  if (node_->text.empty()) return error("is an empty text; write a value");
  return node_->text;
}

Result<std::string> View::text() const {
  NEZHA_TRY(auto value, scalar());
  const PlainType type = node_->quoted ? PlainType::kText : plain_type(value);
  if (type == PlainType::kText) return value;
  return error(std::string("is a ") + (type == PlainType::kBoolean ? "boolean" : "number") +
               "; put it in quotes: " + quoted(value));
}

Result<uint64_t> View::size_bytes() const {
  NEZHA_TRY(auto value, scalar());
  const auto bytes = parse_size_bytes(value);
  if (!bytes) return error(quoted(value) + " is not a size; write bytes or a quantity such as 512Mi, 2Gi or 1Ti");
  if (*bytes == 0) return error(quoted(value) + " is no space at all; write a size above zero or remove the key");
  return *bytes;
}

Result<std::chrono::seconds> View::duration() const {
  NEZHA_TRY(auto value, scalar());
  const auto seconds = parse_duration_s(value);
  if (!seconds) return error(quoted(value) + " is not a duration; write for example 90s, 15m, 24h or 7d");
  if (*seconds == 0) return error(quoted(value) + " is no time at all; write at least 1s");
  return std::chrono::seconds(*seconds);
}

Result<IpAddress> View::ip() const {
  NEZHA_TRY(auto value, scalar());
  auto canonical = canonical_ip(value);
  if (!canonical) return error(quoted(value) + " is not an IP address; write for example 10.96.12.34 or fd00::12");
  return IpAddress(std::move(*canonical));
}

Result<ListenAddress> View::address(std::optional<uint16_t> port_default, bool zero_allowed) const {
  NEZHA_TRY(auto value, scalar());
  const HostPort parts = split_address(value);
  const auto host = canonical_ip(parts.host);
  const std::string example = port_default ? "10.96.0.10:" + std::to_string(*port_default) : "0.0.0.0:80 or [::]:80";
  if (!host) return error(quoted(value) + " does not start with an IP address; write IP:PORT, for example " + example);
  if (!parts.port && !port_default) return error(quoted(value) + " has no port; write IP:PORT, for example " + example);
  const auto port = parts.port ? parse_port(*parts.port) : port_default;
  if (!port) return error(quoted(value) + " has a bad port; write a number from 1 to 65535");
  if (*port == 0 && !zero_allowed) return error(quoted(value) + " has port 0; write a number from 1 to 65535");
  return ListenAddress{.host = *host, .port = *port};
}

Result<std::string> View::absolute_path() const {
  NEZHA_TRY(auto value, text());
  if (value[0] != '/') return error(quoted(value) + " is not an absolute path; start it with /");
  if (value.find('\0') != std::string::npos) return error(quoted(value) + " holds a zero byte; remove it");
  return value;
}

Result<size_t> View::one_of(std::initializer_list<std::string_view> words) const {
  NEZHA_TRY(auto value, scalar());
  const auto* found = std::find(words.begin(), words.end(), value);
  if (found == words.end()) return error(quoted(value) + " is not a choice here; write " + any_of_words(words));
  return static_cast<size_t>(found - words.begin());
}

}  // namespace nezha::config
