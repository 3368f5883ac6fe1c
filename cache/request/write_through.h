// write_through: has an object that was just written through the cache fetched into it, where the upstream says so.
// What the source stores is asked for, not what passed by: head, ETag and checksums of an object are the source's to
// say. Threads: the loop's own.
#pragma once

#include "cache/request/session_deps.h"

namespace nezha::cache {

// `status`: of the source's answer to the request.
void fetch_written(SessionDeps& deps, const Classified& classified, const http::RequestHead& request, int status,
                   bool tls);

}  // namespace nezha::cache
