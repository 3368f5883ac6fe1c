// HTTP dates (RFC 9110 §5.6.7). Pure. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nezha/base/clock.h"

namespace nezha::http {

// IMF-fixdate, RFC 850 and asctime forms, in any case of letters (RFC 9111 §4.2); nothing for anything else.
std::optional<WallTime> parse_date(std::string_view text, WallTime now);
// IMF-fixdate, whole seconds.
std::string format_date(WallTime time);

}  // namespace nezha::http
