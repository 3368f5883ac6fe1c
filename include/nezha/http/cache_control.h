// Cache-Control as values (RFC 9111 §5.2, RFC 5861, RFC 8246), and the arithmetic of freshness (RFC 9111 §4.2).
// Pure. Threads: any. Unknown directives are ignored; of a repeated or contradictory one the most careful reading wins.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "nezha/base/clock.h"
#include "nezha/http/fields.h"

namespace nezha::http {

using Seconds = std::chrono::seconds;

struct CacheControl {
  bool no_store = false;
  bool no_cache = false;    // without field names
  bool is_private = false;  // without field names: never shared
  bool is_public = false;
  bool must_revalidate = false;   // also allows sharing the answer to an authorised request (RFC 9111 §3.5)
  bool proxy_revalidate = false;  // stale is forbidden as by must-revalidate, and no more
  bool must_understand = false;
  bool only_if_cached = false;
  bool immutable = false;
  bool max_stale_any = false;                // max-stale without a value
  std::vector<std::string> withheld_fields;  // of no-cache="…" and private="…": not to be reused with the rest
  std::optional<Seconds> max_age;
  std::optional<Seconds> s_maxage;
  std::optional<Seconds> max_stale;
  std::optional<Seconds> min_fresh;
  std::optional<Seconds> stale_while_revalidate;
  std::optional<Seconds> stale_if_error;
};

// All Cache-Control lines of a message together.
CacheControl parse_cache_control(const Fields& fields);

// delta-seconds; a value that is no number is read as 0 by the caller (stale), an overflow as 2^31.
std::optional<Seconds> parse_delta_seconds(std::string_view text);

// What a response says about its own lifetime, as a shared cache reads it.
struct Lifetime {
  Seconds fresh_for{0};    // from the response's own date
  bool explicit_ = false;  // s-maxage, max-age or Expires; otherwise heuristic or none
  bool heuristic = false;  // a tenth of the time since Last-Modified, at most a day
  Seconds initial_age{0};  // corrected_initial_age of RFC 9111 §4.2.3
};
// `heuristic`: whether the status allows one (RFC 9111 §4.2.2).
Lifetime lifetime_of(const Fields& response, const CacheControl& control, WallTime request_time, WallTime response_time,
                     bool heuristic = true);

}  // namespace nezha::http
