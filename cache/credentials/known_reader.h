// known_reader: who sends a request, where the cache has the key it is signed with. Pure. Threads: any.
#pragma once

#include <optional>

#include "cache/credentials/approvals.h"
#include "cache/credentials/key_ring.h"
#include "nezha/base/clock.h"
#include "nezha/http/message.h"

namespace nezha::cache {

struct KnownReader {
  s3::AccessKeyId id;
  Approvals::Way way = Approvals::Way::kHeader;  // in which he signs
};

// Nothing where the signature is none, not valid now, or of another key; nor where a field beside it may decide what
// the source answers (Cookie, or an X-Amz-* that is more than a part of the signature): such a request is the source's.
std::optional<KnownReader> known_reader(const http::RequestHead& request, const KeySet& keys, WallTime now);

}  // namespace nezha::cache
