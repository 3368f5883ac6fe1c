// BodySource: bytes of one answer, in order, from wherever they are: pinned in a tier or arriving from upstream.
// Threads: the reader's loop.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cache/tier/tier.h"
#include "nezha/net/async.h"

namespace nezha::cache {

class BodySource {
 public:
  virtual ~BodySource() = default;
  // The next bytes, without waiting: nothing when they are not there yet, empty bytes at the proven end of the body.
  // A failure means the rest will never come: the client's connection must be reset, not ended.
  // The bytes stay valid while the pin lives; each call moves on behind them.
  virtual std::optional<Result<PinnedBytes>> try_next() = 0;
  // Returns when try_next() has something to say.
  virtual net::Task<> wait() = 0;
};

}  // namespace nezha::cache
