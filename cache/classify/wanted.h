// wanted: which bytes of a stored representation a request asks for (RFC 9110 §14.2). Pure.
// Threads: any.
#pragma once

#include <optional>
#include <vector>

#include "cache/classify/stored_head.h"

namespace nezha::cache {

struct Wanted {
  enum class Kind {
    kWhole,          // the representation as it is; one range, or none for HEAD
    kOne,            // a 206 of one range
    kSeveral,        // a 206 of several, as multipart/byteranges
    kUnsatisfiable,  // 416, no range
  };
  Kind kind = Kind::kWhole;
  // In the order of the request. Never overlapping or touching: such ones are made one, and then all are in ascending
  // order. Together never more than the representation.
  std::vector<http::ByteRange> ranges;
};

// Nothing when it cannot be told: the representation's length is not known.
std::optional<Wanted> wanted_of(const Classified& request, const http::Fields& request_fields, const StoredHead& head,
                                WallTime now);

}  // namespace nezha::cache
