// Prefetcher: fetches objects into the cache before anybody asks for them. It asks the cache as a reader would, over
// loopback, with requests signed by the upstream's own keys: so what it brings in is private like any other data, and
// each reader is still authorised by the source. What is stored and fresh is read from the store, not fetched again.
// Threads: the calls any; works on threads of its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cache/classify/routes.h"
#include "cache/credentials/key_ring.h"
#include "cache/prefetch/fetch_queue.h"
#include "nezha/base/clock.h"
#include "nezha/net/loop.h"

namespace nezha::cache {

class Prefetcher {
 public:
  virtual ~Prefetcher() = default;  // stops
  // Ends what is under way; what is queued is not fetched. Returns soon, when nothing runs any more.
  virtual void stop() = 0;
  // POST /prefetch: begins a job in the background. Its number, as JSON: {"job": 1}. Fails with kFixInput: the body is
  // wrong, or names what cannot be read.
  virtual Result<std::string> start(std::string_view json) = 0;
  // GET /prefetch: the latest jobs and how far they are, as JSON.
  virtual std::string report() const = 0;
};

struct PrefetchDeps {
  const RouteStore& routes;
  const KeyRing& keys;
  FetchQueue& queue;
  const Clock& clock;
  obs::Log& log;
  obs::Metrics& metrics;
  // Where the cache itself listens; port 0: it does not.
  net::SocketAddress http;
  net::SocketAddress https;
};
std::unique_ptr<Prefetcher> start_prefetcher(PrefetchDeps deps);

}  // namespace nezha::cache
