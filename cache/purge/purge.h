// Purger: drops stored responses that somebody names from outside: an operator (POST /purge), or S3 itself through its
// event notifications. When it returns, what was stored is gone, also after a restart, and fills that were under way
// are not published, and known readers are asked for at the source again.
// What is named by its whole name is found at once; prefixes and upstreams read each stored head.
// Threads: any; the calls block.
#pragma once

#include <string_view>
#include <vector>

#include "cache/classify/routes.h"
#include "cache/credentials/approvals.h"
#include "cache/store/store.h"

namespace nezha::cache {

class Purger {
 public:
  // `ports`: that clients may name in Host, beside 80 and 443. All references outlive it.
  Purger(Store& store, Approvals& approvals, const Clock& clock, const RouteStore& routes, std::vector<uint16_t> ports,
         obs::Log& log, obs::Metrics& metrics);

  // How many paths were dropped. Fails with kFixInput: the body is wrong, or names an upstream that is not configured.
  // A host need not be: what was stored while it was may be still there.
  Result<size_t> purge(std::string_view json);
  // Of several records those that are understood count. Fails with kFixInput: none is.
  struct TakenEvents {
    size_t purged = 0;          // paths
    size_t not_understood = 0;  // records
  };
  Result<TakenEvents> take_events(std::string_view json);

 private:
  Store& store_;
  Approvals& approvals_;
  const Clock& clock_;
  const RouteStore& routes_;
  const std::vector<uint16_t> ports_;
  obs::Log& log_;
  obs::Counter& purged_;
  obs::Counter& events_;
};

}  // namespace nezha::cache
