#include "nezha/http/date.h"

#include <array>
#include <ctime>

#include "nezha/base/text.h"

namespace nezha::http {
namespace {

constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 7> kLongDays = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                                       "Thursday", "Friday", "Saturday"};

template <size_t N>
int index_of(const std::array<std::string_view, N>& names, std::string_view text) {
  for (size_t i = 0; i < N; ++i) {
    if (iequals(names[i], text)) return static_cast<int>(i);
  }
  return -1;
}

// The clock counts nanoseconds in 64 bits, about 292 years either way: dates outside these years are read as their
// ends, so that also the difference of any two can be taken. "Expires: Fri, 31 Dec 9999 …" is common.
constexpr std::chrono::year kYearMin{1900}, kYearMax{2150};

struct Parts {
  int year = 0, month = 0, day = 0;
  std::string_view time;
};

std::optional<int> number(std::string_view text, size_t digits) {
  if (text.size() != digits) return std::nullopt;
  const auto value = parse_decimal(text);
  return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
}

std::optional<WallTime> assemble(const Parts& parts) {
  if (parts.time.size() != 8 || parts.time[2] != ':' || parts.time[5] != ':') return std::nullopt;
  const auto hour = number(parts.time.substr(0, 2), 2);
  const auto minute = number(parts.time.substr(3, 2), 2);
  const auto second = number(parts.time.substr(6, 2), 2);
  if (!hour || !minute || !second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(parts.year), std::chrono::month(parts.month + 1u),
                                         std::chrono::day(static_cast<unsigned>(parts.day))};
  if (!date.ok()) return std::nullopt;
  if (date.year() < kYearMin) return std::chrono::sys_days(kYearMin / 1 / 1);
  if (date.year() > kYearMax) return std::chrono::sys_days(kYearMax / 1 / 1);
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
}

// "06 Nov 1994 08:49:37 GMT" behind "Sun, ".
std::optional<WallTime> parse_imf(std::string_view rest) {
  if (rest.size() != 24 || !iequals(rest.substr(20), " GMT") || rest[2] != ' ' || rest[6] != ' ' || rest[11] != ' ')
    return std::nullopt;
  const auto day = number(rest.substr(0, 2), 2);
  const int month = index_of(kMonths, rest.substr(3, 3));
  const auto year = number(rest.substr(7, 4), 4);
  if (!day || month < 0 || !year) return std::nullopt;
  return assemble({*year, month, *day, rest.substr(12, 8)});
}

// "06-Nov-94 08:49:37 GMT" behind "Sunday, ".
std::optional<WallTime> parse_rfc850(std::string_view rest, WallTime now) {
  if (rest.size() != 22 || !iequals(rest.substr(18), " GMT") || rest[2] != '-' || rest[6] != '-' || rest[9] != ' ')
    return std::nullopt;
  const auto day = number(rest.substr(0, 2), 2);
  const int month = index_of(kMonths, rest.substr(3, 3));
  const auto year = number(rest.substr(7, 2), 2);
  if (!day || month < 0 || !year) return std::nullopt;
  const std::chrono::year_month_day today{std::chrono::floor<std::chrono::days>(now)};
  int full = static_cast<int>(today.year()) / 100 * 100 + *year;
  if (full > static_cast<int>(today.year()) + 50) full -= 100;  // RFC 9110: more than 50 years ahead is the past
  return assemble({full, month, *day, rest.substr(10, 8)});
}

// "Nov  6 08:49:37 1994" behind "Sun ".
std::optional<WallTime> parse_asctime(std::string_view rest) {
  if (rest.size() != 20 || rest[3] != ' ' || rest[6] != ' ' || rest[15] != ' ') return std::nullopt;
  const int month = index_of(kMonths, rest.substr(0, 3));
  const auto day = rest[4] == ' ' ? number(rest.substr(5, 1), 1) : number(rest.substr(4, 2), 2);
  const auto year = number(rest.substr(16, 4), 4);
  if (month < 0 || !day || !year) return std::nullopt;
  return assemble({*year, month, *day, rest.substr(7, 8)});
}

}  // namespace

std::optional<WallTime> parse_date(std::string_view text, WallTime now) {
  const size_t comma = text.find(", ");
  if (comma == std::string_view::npos) {
    if (text.size() < 4 || text[3] != ' ' || index_of(kDays, text.substr(0, 3)) < 0) return std::nullopt;
    return parse_asctime(text.substr(4));
  }
  const auto day = text.substr(0, comma);
  const auto rest = text.substr(comma + 2);
  if (index_of(kDays, day) >= 0) return parse_imf(rest);
  if (index_of(kLongDays, day) >= 0) return parse_rfc850(rest, now);
  return std::nullopt;
}

std::string format_date(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<size_t>(parts.tm_wday)].data(), parts.tm_mday,
                kMonths[static_cast<size_t>(parts.tm_mon)].data(), parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                parts.tm_sec);
  return buffer;
}

}  // namespace nezha::http
