#include "nezha/http/range.h"

#include <algorithm>

#include "nezha/base/text.h"

namespace nezha::http {

std::optional<ByteRange> RangeSpec::resolve(uint64_t total_bytes) const {
  if (!first) {
    if (*last == 0 || total_bytes == 0) return std::nullopt;
    return ByteRange{total_bytes - std::min(*last, total_bytes), total_bytes};
  }
  if (*first >= total_bytes) return std::nullopt;
  const uint64_t end = last && *last < total_bytes - 1 ? *last + 1 : total_bytes;
  return ByteRange{*first, end};
}

std::optional<std::vector<RangeSpec>> parse_range(std::string_view value) {
  value = trim(value);
  const size_t equals = value.find('=');
  if (equals == std::string_view::npos || !iequals(value.substr(0, equals), "bytes")) return std::nullopt;
  std::vector<RangeSpec> specs;
  for (auto member : split(value.substr(equals + 1), ',')) {
    member = trim(member);
    if (member.empty()) continue;
    const size_t dash = member.find('-');
    if (dash == std::string_view::npos) return std::nullopt;
    RangeSpec spec;
    const auto first = member.substr(0, dash), last = member.substr(dash + 1);
    if (!first.empty() && !(spec.first = parse_decimal(first))) return std::nullopt;
    if (!last.empty() && !(spec.last = parse_decimal(last))) return std::nullopt;
    if (!spec.first && !spec.last) return std::nullopt;
    if (spec.first && spec.last && *spec.last < *spec.first) return std::nullopt;
    specs.push_back(spec);
  }
  if (specs.empty()) return std::nullopt;
  return specs;
}

std::optional<ContentRange> parse_content_range(std::string_view value) {
  value = trim(value);
  if (value.size() < 6 || !iequals(value.substr(0, 6), "bytes ")) return std::nullopt;
  value = trim(value.substr(6));
  const size_t slash = value.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange out;
  const auto span = value.substr(0, slash), total = value.substr(slash + 1);
  if (total != "*" && !(out.total_bytes = parse_decimal(total))) return std::nullopt;
  if (span == "*") return out.total_bytes ? std::optional(out) : std::nullopt;
  const size_t dash = span.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_decimal(span.substr(0, dash)), last = parse_decimal(span.substr(dash + 1));
  if (!first || !last || *last < *first || *last == UINT64_MAX) return std::nullopt;
  if (out.total_bytes && *last >= *out.total_bytes) return std::nullopt;
  out.range = ByteRange{*first, *last + 1};
  return out;
}

std::string format_content_range(ByteRange range, std::optional<uint64_t> total_bytes) {
  return "bytes " + std::to_string(range.begin) + "-" + std::to_string(range.end - 1) + "/" +
         (total_bytes ? std::to_string(*total_bytes) : "*");
}

}  // namespace nezha::http
