// Times as Kubernetes writes them: RFC 3339 in UTC, whole seconds ("2026-03-01T12:00:00Z"). Pure.
// Threads: any.
#pragma once

#include <optional>
#include <string>

#include "nezha/base/clock.h"

namespace nezha::webhook {

std::string to_timestamp(WallTime time);
std::optional<WallTime> parse_timestamp(const std::string& text);

}  // namespace nezha::webhook
