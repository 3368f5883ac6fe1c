// Entity tags and preconditions (RFC 9110 §8.8, §13). Pure. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nezha/base/clock.h"
#include "nezha/http/fields.h"

namespace nezha::http {

// An entity tag as it stands in the field: `"abc"` or `W/"abc"`.
struct EntityTag {
  std::string text;
  bool weak() const { return text.starts_with("W/"); }
  std::string_view opaque() const { return std::string_view(text).substr(weak() ? 2 : 0); }
};

// Nothing for a malformed tag: `"` … `"` without quotes inside, optionally W/ before it.
std::optional<EntityTag> parse_entity_tag(std::string_view text);

// Strong comparison: both strong and equal. Weak comparison: opaque parts equal.
bool strong_match(const EntityTag& a, const EntityTag& b);
bool weak_match(const EntityTag& a, const EntityTag& b);

// What a cache does with a GET or HEAD for which it holds a 200 with these fields (RFC 9110 §13.2.2).
enum class Precondition {
  kProceed,      // send the representation
  kNotModified,  // 304
  kFailed,       // 412
};
Precondition evaluate_preconditions(const Fields& request, const Fields& stored, WallTime now);

// If-Range: true when the Range field applies (RFC 9110 §13.1.5); true without an If-Range.
bool if_range_holds(const Fields& request, const Fields& stored, WallTime now);

}  // namespace nezha::http
