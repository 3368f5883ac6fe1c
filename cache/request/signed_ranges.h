// signed_ranges: a RangeSource of our own requests: parts of the object that a client asked for, signed with the
// upstream's own keys, each with If-Match for the version that the client's request was answered with.
// Threads: the loop's own.
#pragma once

#include <memory>

#include "cache/classify/stored_head.h"
#include "cache/credentials/key_ring.h"
#include "cache/fill/range_source.h"

namespace nezha::cache {

// Null where parts cannot be joined (no strong ETag). Borrows the pool; `request` is the client's.
std::unique_ptr<RangeSource> make_signed_ranges(UpstreamPool& pool, const Origin& origin,
                                                const http::RequestHead& request, StoredHeadPtr head,
                                                std::shared_ptr<const KeySet> keys, std::string_view loop_id);

}  // namespace nezha::cache
