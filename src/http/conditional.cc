#include "nezha/http/conditional.h"

#include <algorithm>

#include "nezha/base/text.h"
#include "nezha/http/date.h"

namespace nezha::http {
namespace {

std::optional<EntityTag> tag_of(const Fields& fields) {
  const auto text = fields.find("ETag");
  return text ? parse_entity_tag(*text) : std::nullopt;
}

bool any_match(const Fields& request, std::string_view name, const std::optional<EntityTag>& stored,
               bool (*match)(const EntityTag&, const EntityTag&)) {
  for (const auto member : list_members(request, name)) {
    if (member == "*") return true;
    const auto wanted = parse_entity_tag(member);
    if (wanted && stored && match(*wanted, *stored)) return true;
  }
  return false;
}

std::optional<WallTime> date_field(const Fields& fields, std::string_view name, WallTime now) {
  if (fields.count(name) != 1) return std::nullopt;
  return parse_date(*fields.find(name), now);
}

}  // namespace

std::optional<EntityTag> parse_entity_tag(std::string_view text) {
  const auto opaque = text.starts_with("W/") ? text.substr(2) : text;
  if (opaque.size() < 2 || opaque.front() != '"' || opaque.back() != '"') return std::nullopt;
  const auto inside = opaque.substr(1, opaque.size() - 2);
  const auto bad = [](char c) { return c == '"' || static_cast<unsigned char>(c) < 0x21 || c == 0x7f; };
  if (std::any_of(inside.begin(), inside.end(), bad)) return std::nullopt;
  return EntityTag{std::string(text)};
}

bool strong_match(const EntityTag& a, const EntityTag& b) { return !a.weak() && !b.weak() && a.text == b.text; }
bool weak_match(const EntityTag& a, const EntityTag& b) { return a.opaque() == b.opaque(); }

Precondition evaluate_preconditions(const Fields& request, const Fields& stored, WallTime now) {
  const auto tag = tag_of(stored);
  const auto modified = date_field(stored, "Last-Modified", now);
  if (request.has("If-Match")) {
    if (!any_match(request, "If-Match", tag, strong_match)) return Precondition::kFailed;
  } else if (const auto since = date_field(request, "If-Unmodified-Since", now)) {
    if (modified && *modified > *since) return Precondition::kFailed;  // without a date it is ignored (§13.1.4)
  }
  if (request.has("If-None-Match")) {
    return any_match(request, "If-None-Match", tag, weak_match) ? Precondition::kNotModified : Precondition::kProceed;
  }
  if (const auto since = date_field(request, "If-Modified-Since", now)) {
    // RFC 9111 §4.3.2: without a Last-Modified, the time at which the response was made takes its place.
    const auto made = modified ? modified : date_field(stored, "Date", now);
    if (made && *made <= *since) return Precondition::kNotModified;
  }
  return Precondition::kProceed;
}

bool if_range_holds(const Fields& request, const Fields& stored, WallTime now) {
  const auto value = request.find("If-Range");
  if (!value) return true;
  if (const auto wanted = parse_entity_tag(*value)) {
    const auto tag = tag_of(stored);
    return tag && strong_match(*wanted, *tag);
  }
  // A date is a strong validator only when it is at least a second older than the response (RFC 9110 §8.8.2.2);
  // the exact text must match.
  const auto modified = stored.find("Last-Modified");
  const auto modified_time = date_field(stored, "Last-Modified", now);
  const auto date = date_field(stored, "Date", now);
  return modified && *modified == *value && modified_time && date && *modified_time + std::chrono::seconds(1) <= *date;
}

}  // namespace nezha::http
