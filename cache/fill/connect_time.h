// How long one of several addresses may take to be connected. Pure. Threads: any.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

#include "nezha/base/clock.h"

namespace nezha::cache {

inline constexpr std::chrono::milliseconds kConnectShareMin{1000};  // a lost SYN is sent again after one second

// An equal share of what is left until `end`, so that a dead address does not use up the time of the others; a second
// at least, also past the end. REQUIRES: addresses_left > 0.
inline SteadyTime connect_deadline(SteadyTime now, SteadyTime end, size_t addresses_left) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - now);
  return now + std::max(left / static_cast<int64_t>(addresses_left), kConnectShareMin);
}

}  // namespace nezha::cache
