// Answers one request of a client from the real server, past the cache: parsed, never stored. One request a
// connection, and `Connection: close` on the answer: a second one might be for another server, and the client's next
// connection finds the cache again, as soon as there is one.
// Hosts, loops and requests that are no HTTP are judged as the cache does. An answer that breaks off is a reset.
// Threads: the loop's own.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "cache/classify/routes.h"
#include "cache/fill/upstream.h"
#include "cache/supervise/drop_queue.h"

namespace nezha::cache {

struct HttpRelayDeps {
  const RouteStore& routes;
  UpstreamPool& pool;
  DropQueue& drops;
  const Clock& clock;
  obs::Log& log;
  std::string loop_id;
  bool draining = false;
  std::set<net::Stream*> resting{};  // nothing is under way on them
};

net::Task<> run_http_relay(HttpRelayDeps& deps, std::unique_ptr<net::Stream> client);

}  // namespace nezha::cache
