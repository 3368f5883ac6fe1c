// Fuzz target: any text as Range, Content-Range, Cache-Control, entity tags and dates: the pure parsers of single
// values.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nezha/base/check.h"
#include "nezha/http/cache_control.h"
#include "nezha/http/conditional.h"
#include "nezha/http/date.h"
#include "nezha/http/range.h"

namespace nezha::http {
namespace {

void check_ranges(std::string_view text) {
  if (const auto specs = parse_range(text)) {
    NEZHA_CHECK(!specs->empty(), "a range set has members");
    for (const auto& spec : *specs) {
      for (const uint64_t total : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, uint64_t{5} << 30, UINT64_MAX}) {
        const auto range = spec.resolve(total);
        NEZHA_CHECK(!range || (range->begin < range->end && range->end <= total), "inside the representation");
      }
    }
  }
  if (const auto parsed = parse_content_range(text); parsed && parsed->range) {
    NEZHA_CHECK(parsed->range->begin < parsed->range->end, "not empty");
    NEZHA_CHECK(!parsed->total_bytes || parsed->range->end <= *parsed->total_bytes, "inside the total");
    if (!parsed->total_bytes) return;
    const auto again = parse_content_range(format_content_range(*parsed->range, *parsed->total_bytes));
    NEZHA_CHECK(again && again->range == parsed->range && again->total_bytes == parsed->total_bytes, "round trip");
  }
}

void check_freshness(std::string_view text) {
  Fields fields;
  for (const char* name :
       {"Cache-Control", "Expires", "Age", "Last-Modified", "Date", "If-None-Match", "If-Range", "ETag"}) {
    fields.add(name, text);
  }
  const auto control = parse_cache_control(fields);
  NEZHA_CHECK(!control.max_age || control.max_age->count() >= 0, "no negative lifetime");
  const WallTime now = WallTime{} + std::chrono::hours(490'000);
  const auto lifetime = lifetime_of(fields, control, now, now);
  NEZHA_CHECK(lifetime.fresh_for.count() >= 0 && lifetime.initial_age.count() >= 0, "no negative time");
  (void)evaluate_preconditions(fields, fields, now);
  (void)if_range_holds(fields, fields, now);
}

void check_date(std::string_view text) {
  const WallTime now = WallTime{} + std::chrono::hours(490'000);
  const auto date = parse_date(text, now);
  if (date) NEZHA_CHECK(parse_date(format_date(*date), now) == date, "round trip");
}

}  // namespace
}  // namespace nezha::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  nezha::http::check_ranges(text);
  nezha::http::check_freshness(text);
  nezha::http::check_date(text);
  return 0;
}
