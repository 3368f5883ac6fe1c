#include "src/s3/amz_date.h"

#include <cstdio>

#include "nezha/base/text.h"

namespace nezha::s3 {

std::optional<std::chrono::sys_seconds> parse_amz_date(std::string_view text) {
  if (text.size() != 16 || text[8] != 'T' || text[15] != 'Z') return std::nullopt;
  const auto number = [&](size_t at, size_t digits) { return parse_decimal(text.substr(at, digits)).value_or(99); };
  const auto year = static_cast<int>(parse_decimal(text.substr(0, 4)).value_or(0));
  const std::chrono::year_month_day day{std::chrono::year(year),
                                        std::chrono::month(static_cast<unsigned>(number(4, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(6, 2)))};
  const uint64_t hour = number(9, 2), minute = number(11, 2), second = number(13, 2);
  if (year < 1970 || !day.ok() || hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return std::chrono::sys_days(day) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second);
}

std::string format_amz_date(std::chrono::sys_seconds time) {
  const auto midnight = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day day{midnight};
  const std::chrono::hh_mm_ss clock{time - midnight};
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%04d%02u%02uT%02d%02d%02dZ", static_cast<int>(day.year()),
                static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()),
                static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
                static_cast<int>(clock.seconds().count()));
  return buffer;
}

}  // namespace nezha::s3
