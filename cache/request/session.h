// Session: the life of one client connection; request_fsm in session.cc is the table of steps of one request.
// Owns no policy: classify, stored_head and index decide, fill and deliver move bytes.
// Threads: the loop's own.
#pragma once

#include <memory>
#include <string>

#include "cache/classify/routes.h"
#include "cache/deliver/send_meter.h"
#include "cache/fill/flight.h"
#include "cache/fill/upstream.h"
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
  obs::Counter& collapsed;
  obs::Counter& miss;
  obs::Counter& pass;
  obs::Counter& refused;
  obs::Counter& error;
  obs::Counter& aborted;
  obs::Counter& sent_bytes;
  obs::Counter& hit_bytes;
};

// What every session of one loop works with. Outlives the sessions.
struct SessionDeps {
  const RouteStore& routes;
  Store& store;
  FlightTable& flights;
  FillDeps fill;
  UpstreamPool& pool;
  net::Gate& fills;  // fills outlive their sessions
  const Clock& clock;
  obs::Log& log;
  RequestMetrics& metrics;
  std::string loop_id;  // this instance's mark in CDN-Loop
  SendMeter& send_meter;
  const bool& draining;  // no further request on a connection
};

// Serves requests until either side closes. `idle` is set while the connection waits for a request, so that draining
// can end it.
net::Task<> run_session(SessionDeps& deps, std::unique_ptr<net::Stream> stream, bool& idle);

}  // namespace nezha::cache
