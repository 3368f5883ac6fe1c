#include "cache/fill/range_plan.h"

#include <algorithm>

#include "nezha/base/check.h"

namespace nezha::cache {

RangePlan::RangePlan(http::ByteRange all, uint64_t part_bytes) : part_bytes_(part_bytes) {
  NEZHA_CHECK(part_bytes > 0, "parts have a size");
  if (all.begin < all.end) left_.emplace(all.begin, all.end);
}

http::ByteRange RangePlan::take_from(Left::iterator range, uint64_t begin) {
  const uint64_t end = range->second, offset = begin % part_bytes_;
  const uint64_t size_bytes = std::min(end - begin, part_bytes_ - offset);
  const http::ByteRange part{begin, begin + size_bytes};
  if (range->first == begin)
    left_.erase(range);
  else
    range->second = begin;
  if (part.end < end) left_.emplace(part.end, end);
  return part;
}

std::optional<http::ByteRange> RangePlan::take() {
  if (left_.empty()) return std::nullopt;
  return take_from(left_.begin(), left_.begin()->first);
}

std::optional<http::ByteRange> RangePlan::take_at(uint64_t position) {
  const auto after = left_.upper_bound(position);
  if (after == left_.begin()) return std::nullopt;
  const auto range = std::prev(after);
  return position < range->second ? std::optional(take_from(range, position)) : std::nullopt;
}

void RangePlan::give_back(http::ByteRange part) {
  if (part.begin >= part.end) return;
  auto at = left_.emplace(part.begin, part.end).first;
  if (const auto next = std::next(at); next != left_.end() && next->first == part.end) {
    at->second = next->second;
    left_.erase(next);
  }
  if (at == left_.begin()) return;
  if (const auto before = std::prev(at); before->second == at->first) {
    before->second = at->second;
    left_.erase(at);
  }
}

}  // namespace nezha::cache
