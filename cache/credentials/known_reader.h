// known_reader: who sends a request, where the cache has the key it is signed with. Pure. Threads: any.
#pragma once

#include <optional>

#include "cache/classify/classify.h"
#include "cache/credentials/approvals.h"
#include "cache/credentials/key_ring.h"
#include "nezha/base/clock.h"
#include "nezha/http/message.h"

namespace nezha::cache {

struct KnownReader {
  Approvals::Subject subject;
  // No field beside the signature may decide what the source answers (Cookie, or an X-Amz-* that is more than a part of
  // a signature): approvals are for such requests alone.
  bool plain = false;
};

// Nothing where the signature is none, not valid now, or of another key. `tls`: how the request came.
// What an approval is good under alone: TLS or not, query, Referer, User-Agent, what is signed of the body, and each
// signed URL by itself, since such URLs are given away.
std::optional<KnownReader> known_reader(const http::RequestHead& request, const CacheKey& key, bool tls,
                                        const KeySet& keys, WallTime now);

}  // namespace nezha::cache
