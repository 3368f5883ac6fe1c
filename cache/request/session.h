// Session: the life of one client connection; handle() in session.cc is the table of steps of one request.
// Owns no policy: classify, stored_head and index decide, fill and deliver move bytes, answering talks to the client.
// Threads: the loop's own.
#pragma once

#include <memory>

#include "cache/classify/classify.h"
#include "cache/request/session_deps.h"

namespace nezha::cache {

// Serves requests until either side closes. `idle` is set while the connection waits for a request, so that draining
// can end it.
net::Task<> run_session(SessionDeps& deps, std::unique_ptr<net::Stream> stream, bool& idle, Arrival arrival);

}  // namespace nezha::cache
