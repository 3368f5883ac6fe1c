// RangePlan: which parts of a body nobody has begun to fetch. Given out in ascending order, cut at multiples of the
// part's size. Pure. Threads: one at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "nezha/http/range.h"

namespace nezha::cache {

class RangePlan {
 public:
  // REQUIRES: part_bytes > 0.
  RangePlan(http::ByteRange all, uint64_t part_bytes);
  // The first part that is left.
  std::optional<http::ByteRange> take();
  // What begins just there, when that is left.
  std::optional<http::ByteRange> take_at(uint64_t position);
  // It was taken, and is to be fetched by somebody else.
  void give_back(http::ByteRange part);

 private:
  using Left = std::map<uint64_t, uint64_t>;  // begin -> end, not touching
  http::ByteRange take_from(Left::iterator range, uint64_t begin);
  uint64_t part_bytes_;
  Left left_;
};

}  // namespace nezha::cache
