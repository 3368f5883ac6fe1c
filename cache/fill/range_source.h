// RangeSource: further requests for the body that a fill has begun to read, each for a part of it, so that a line whose
// connections are slow one by one is used by several. Threads: the loop's own.
#pragma once

#include "cache/fill/upstream.h"
#include "nezha/http/range.h"

namespace nezha::cache {

class RangeSource {
 public:
  virtual ~RangeSource() = default;
  // An exchange whose body is exactly that part of the same version. Fails with kGiveUp when the source does not give
  // it: it will not give other parts either. After any other failure the same call may be repeated later.
  virtual net::Task<Result<Exchange>> open(http::ByteRange part) = 0;
};

}  // namespace nezha::cache
