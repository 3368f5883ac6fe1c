// head_record: a stored head as bytes of a head record, and back (docs/formats.md). Pure.
// What follows from the fields (control, ETag, prepared lines) is not written but made anew.
// Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "cache/classify/stored_head.h"
#include "nezha/base/result.h"

namespace nezha::cache {

std::string encode_head(const StoredHead& head);

// Fails with kGiveUp: not a head record of this version. Any bytes may be given: lengths are checked before use.
Result<StoredHeadPtr> decode_head(std::string_view bytes, uint64_t generation);

}  // namespace nezha::cache
