#include "nezha/http/cache_control.h"

#include <algorithm>

#include "nezha/base/text.h"
#include "nezha/http/date.h"

namespace nezha::http {
namespace {

constexpr Seconds kDeltaMax{2147483648};  // RFC 9111 §1.2.2
constexpr Seconds kHeuristicMax = std::chrono::hours(24);

std::string_view unquoted(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
  return text;
}

// The careful reading of a lifetime: the first value wins unless a later one is shorter; no number means 0.
void take(std::optional<Seconds>& into, std::string_view value) {
  const Seconds seconds = parse_delta_seconds(unquoted(value)).value_or(Seconds{0});
  into = into ? std::min(*into, seconds) : seconds;
}

void apply(CacheControl& out, std::string_view name, std::optional<std::string_view> value) {
  const auto is = [&](std::string_view wanted) { return iequals(name, wanted); };
  if (is("no-store"))
    out.no_store = true;
  else if (is("public"))
    out.is_public = true;
  else if (is("must-revalidate"))
    out.must_revalidate = true;
  else if (is("proxy-revalidate"))
    out.proxy_revalidate = true;
  else if (is("must-understand"))
    out.must_understand = true;
  else if (is("only-if-cached"))
    out.only_if_cached = true;
  else if (is("immutable"))
    out.immutable = true;
  else if (is("max-age"))
    take(out.max_age, value.value_or(""));
  else if (is("s-maxage"))
    take(out.s_maxage, value.value_or(""));
  else if (is("min-fresh"))
    take(out.min_fresh, value.value_or(""));
  else if (is("stale-while-revalidate"))
    take(out.stale_while_revalidate, value.value_or(""));
  else if (is("stale-if-error"))
    take(out.stale_if_error, value.value_or(""));
  else if (is("max-stale")) {
    if (value)
      take(out.max_stale, *value);
    else
      out.max_stale_any = true;
  } else if (is("no-cache") || is("private")) {
    const auto names = value ? list_members(unquoted(*value)) : std::vector<std::string_view>{};
    if (names.empty()) (is("private") ? out.is_private : out.no_cache) = true;
    for (const auto field : names) out.withheld_fields.emplace_back(field);
  }
}

Seconds seconds_between(WallTime later, WallTime earlier) {
  return std::chrono::duration_cast<Seconds>(later - earlier);
}

// Age (RFC 9111 §5.1): the first member of the first line; anything that is no number is ignored.
Seconds age_value(const Fields& response) {
  const auto members = list_members(response, "Age");
  if (members.empty()) return Seconds{0};
  return parse_delta_seconds(members[0]).value_or(Seconds{0});
}

}  // namespace

std::optional<Seconds> parse_delta_seconds(std::string_view text) {
  if (text.empty() || !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; }))
    return std::nullopt;
  const auto number = parse_decimal(text);
  if (!number || *number > static_cast<uint64_t>(kDeltaMax.count())) return kDeltaMax;
  return Seconds(static_cast<int64_t>(*number));
}

CacheControl parse_cache_control(const Fields& fields) {
  CacheControl out;
  for (const auto member : list_members(fields, "Cache-Control")) {
    const size_t equals = member.find('=');
    if (equals == std::string_view::npos)
      apply(out, member, std::nullopt);
    else
      apply(out, member.substr(0, equals), member.substr(equals + 1));
  }
  return out;
}

Lifetime lifetime_of(const Fields& response, const CacheControl& control, WallTime request_time, WallTime response_time,
                     bool heuristic) {
  Lifetime out;
  const auto date_text = response.find("Date");
  const auto date = date_text ? parse_date(*date_text, response_time) : std::nullopt;
  const WallTime base = date.value_or(response_time);
  const Seconds apparent_age = std::max(Seconds{0}, seconds_between(response_time, base));
  const Seconds response_delay = seconds_between(response_time, request_time);
  out.initial_age = std::max(apparent_age, age_value(response) + response_delay);

  if (control.s_maxage || control.max_age) {
    out.fresh_for = control.s_maxage ? *control.s_maxage : *control.max_age;
    out.explicit_ = true;
  } else if (response.has("Expires")) {
    out.explicit_ = true;  // an invalid date, or several, is in the past (RFC 9111 §5.3)
    const auto expires =
        response.count("Expires") == 1 ? parse_date(*response.find("Expires"), response_time) : std::nullopt;
    if (expires) out.fresh_for = std::max(Seconds{0}, seconds_between(*expires, base));
  } else if (const auto modified_text = response.find("Last-Modified")) {
    const auto modified = heuristic ? parse_date(*modified_text, response_time) : std::nullopt;
    if (modified && *modified < base) {
      out.fresh_for = std::min(kHeuristicMax, seconds_between(base, *modified) / 10);
      out.heuristic = true;
    }
  }
  return out;
}

}  // namespace nezha::http
