#include "cache/classify/wanted.h"

#include <algorithm>

#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

using http::ByteRange;
using Kind = Wanted::Kind;

// One range for those that overlap or touch (RFC 9110 §15.3.7.2).
std::vector<ByteRange> coalesced(std::vector<ByteRange> ranges) {
  std::vector<ByteRange> sorted = ranges;
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
  std::vector<ByteRange> merged;
  for (const auto& range : sorted) {
    if (!merged.empty() && range.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, range.end);
    else
      merged.push_back(range);
  }
  return merged.size() == ranges.size() ? ranges : merged;
}

Wanted several(const Classified& request, uint64_t total_bytes) {
  const ByteRange whole{0, total_bytes};
  // A list too long to be meant (RFC 9110 §17.15) is no range request.
  if (request.ranges.size() > limits::kRangesMax) return {Kind::kWhole, {whole}};
  std::vector<ByteRange> resolved;
  for (const auto& spec : request.ranges) {
    if (const auto range = spec.resolve(total_bytes)) resolved.push_back(*range);
  }
  if (resolved.empty()) return {Kind::kUnsatisfiable, {}};
  auto ranges = coalesced(std::move(resolved));
  const Kind kind = ranges.size() == 1 ? Kind::kOne : Kind::kSeveral;
  return {kind, std::move(ranges)};
}

}  // namespace

std::optional<Wanted> wanted_of(const Classified& request, const http::Fields& request_fields, const StoredHead& head,
                                WallTime now) {
  if (request.head) return head.total_bytes ? std::optional(Wanted{}) : std::nullopt;
  // Only a 200 has ranges, and only when the client's If-Range means this representation (§14.2).
  const bool ranged = (request.range || !request.ranges.empty()) && head.status == 200 &&
                      http::if_range_holds(request_fields, head.fields, now);
  if (!head.total_bytes) {
    // A part of something of unknown length: only what lies between two numbers can be told.
    if (!ranged || !request.range || !request.range->first || !request.range->last) return std::nullopt;
    if (*request.range->last == UINT64_MAX) return std::nullopt;
    return Wanted{Kind::kOne, {{*request.range->first, *request.range->last + 1}}};
  }
  const uint64_t total_bytes = *head.total_bytes;
  if (!ranged) return Wanted{Kind::kWhole, {{0, total_bytes}}};
  if (!request.range) return several(request, total_bytes);
  const auto range = request.range->resolve(total_bytes);
  if (!range) return Wanted{Kind::kUnsatisfiable, {}};
  return Wanted{Kind::kOne, {*range}};
}

}  // namespace nezha::cache
