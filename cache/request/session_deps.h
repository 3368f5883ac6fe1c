// SessionDeps: what every session of one loop works with, and the counters it keeps.
// Threads: the loop's own; the counters any.
#pragma once

#include <string>

#include "cache/classify/routes.h"
#include "cache/credentials/approvals.h"
#include "cache/credentials/key_ring.h"
#include "cache/deliver/send_meter.h"
#include "cache/fill/flight.h"
#include "cache/fill/upstream.h"
#include "cache/prefetch/fetch_queue.h"
#include "cache/store/store.h"
#include "nezha/net/async.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"

namespace nezha::cache {

// How requests ended, one series each.
struct RequestMetrics {
  explicit RequestMetrics(obs::Metrics& metrics);
  obs::Counter& hit;
  obs::Counter& revalidated;
  obs::Counter& stale;
  obs::Counter& collapsed;
  obs::Counter& miss;
  obs::Counter& pass;
  obs::Counter& refused;
  obs::Counter& error;
  obs::Counter& background;
  obs::Counter& continued;
  obs::Counter& aborted;
  obs::Counter& not_fetched;
  obs::Counter& sent_bytes;
  obs::Counter& hit_bytes;
};

// Outlives the sessions.
struct SessionDeps {
  const RouteStore& routes;
  Store& store;
  FlightTable& flights;
  FillDeps fill;
  UpstreamPool& pool;
  net::Gate& fills;  // fills and checks in the background outlive their sessions
  const Clock& clock;
  obs::Log& log;
  RequestMetrics& metrics;
  std::string loop_id;  // this instance's mark in CDN-Loop
  SendMeter& send_meter;
  const KeyRing& keys;
  Approvals& approvals;
  FetchQueue& fetches;
  const bool& draining;  // no further request on a connection
};

}  // namespace nezha::cache
