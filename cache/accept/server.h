// Server: all loops, each with its listeners, sessions and upstream connections; start, drain, stop.
// Threads: the owner's; it runs one thread per loop inside.
#pragma once

#include <memory>
#include <vector>

#include "cache/accept/certificates.h"
#include "cache/classify/routes.h"
#include "cache/credentials/approvals.h"
#include "cache/credentials/key_ring.h"
#include "cache/prefetch/fetch_queue.h"
#include "cache/store/store.h"
#include "nezha/base/clock.h"
#include "nezha/net/loop.h"
#include "nezha/net/resolver.h"
#include "nezha/net/tls.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"

namespace nezha::cache {

struct ServerDeps {
  const RouteStore& routes;
  Store& store;
  net::Resolver& resolver;
  net::Workers& workers;
  const Clock& clock;
  obs::Log& log;
  obs::Metrics& metrics;
  const Certificates& certificates;
  const KeyRing& keys;
  Approvals& approvals;
  FetchQueue& fetches;
  std::shared_ptr<const net::TlsClient> tls_client;
};

// For each address, a socket per loop.
struct ListeningSockets {
  using OfAddress = std::vector<net::BoundSocket>;
  std::vector<OfAddress> http, https, relay;
};
// Fails with kFixInput: an address cannot be bound.
Result<ListeningSockets> open_sockets(const config::ListenSettings& listen, size_t loops);

class Server {
 public:
  virtual ~Server() = default;
  // Clients are answered from now on; until then they wait in the sockets' queues.
  virtual void accept() = 0;
  // Addresses in force, with the ports the kernel chose for port 0.
  virtual std::vector<net::SocketAddress> http_addresses() const = 0;
  virtual std::vector<net::SocketAddress> https_addresses() const = 0;
  virtual std::vector<net::SocketAddress> relay_addresses() const = 0;
  // Open client connections of all loops.
  virtual size_t connections() const = 0;
  // When the loop that is the furthest behind did something last; at most half a second ago for one that is well.
  virtual SteadyTime last_turn() const = 0;
  // Stops accepting, ends idle connections, lets answers under way finish, then cuts what is left at `deadline`.
  // Returns when nothing runs any more. True when everything ended by itself.
  virtual bool drain(SteadyTime deadline) = 0;
};

// Starts the loops; accept() lets them serve. The sockets are the server's alone, as far as this process goes.
// REQUIRES: `loops` of them for each address.
Result<std::unique_ptr<Server>> start_server(ServerDeps deps, ListeningSockets sockets, size_t loops);

}  // namespace nezha::cache
