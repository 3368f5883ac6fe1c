// background: a stale response that was served within stale-while-revalidate is checked with the source (RFC 5861 §3).
// At most one check per object is under way.
// Threads: the loop's own.
#pragma once

#include <memory>

#include "cache/request/session_deps.h"

namespace nezha::cache {

struct BackgroundCheck {
  std::shared_ptr<const Routes> routes;  // keeps classified.upstream
  Classified classified;
  http::RequestHead request;  // the client's
  StoredHeadPtr head;
};

// Whether this request may stand for a check: one with credentials may not be changed, and speaks for one reader only.
bool may_check_in_background(const Classified& classified);

// Starts the check, owned by deps.fills, unless one is under way.
void check_in_background(SessionDeps& deps, BackgroundCheck check);

}  // namespace nezha::cache
