// Dates as SigV4 writes them: "20130524T000000Z", UTC, whole seconds. Private to src/s3. Threads: any.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace nezha::s3 {

// Nothing for another form, a day that no calendar has, or a year before 1970.
std::optional<std::chrono::sys_seconds> parse_amz_date(std::string_view text);
// Years 1970 to 9999.
std::string format_amz_date(std::chrono::sys_seconds time);

}  // namespace nezha::s3
