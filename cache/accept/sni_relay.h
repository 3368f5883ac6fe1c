// Relays TLS connections to the real server by the name in their ClientHello, never decrypted, never cached. An alias
// redirects every port of a host, so without this an https:// URL of that host would break.
// Threads: the loop's own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "cache/accept/client_hello.h"
#include "cache/classify/routes.h"
#include "nezha/net/loop.h"
#include "nezha/net/resolver.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"

namespace nezha::cache {

struct SniRelayDeps {
  const RouteStore& routes;
  net::Loop& loop;
  net::Resolver& resolver;
  net::Gate& gate;
  const Clock& clock;
  obs::Log& log;
  obs::Counter& relayed;
  obs::Counter& refused;
  std::unordered_map<uint64_t, size_t> hellos{};  // being relayed by this loop, by hash
  size_t next_address = 0;                        // with which the next connection begins
};

// Reads the client's ClientHello, and appends all that came to `bytes`; kDone or kBad. Fails when the client leaves
// before that or `until` passes.
net::Task<Result<ClientHello>> read_hello(net::Stream& client, std::string& bytes, SteadyTime until);

// Relays until both directions have ended; `hello_bytes` is what was read of the client so far. Borrows `upstream`
// until the server is connected. A connection that comes back through its own upstream is refused: the random bytes of
// its ClientHello give it away.
net::Task<> run_sni_relay(SniRelayDeps& deps, std::unique_ptr<net::Stream> client, const config::Upstream& upstream,
                          std::string host, std::string hello_bytes);

// Sends the TLS alert unrecognized_name and closes.
net::Task<> refuse_tls(SniRelayDeps& deps, net::Stream& client, std::string reason);

}  // namespace nezha::cache
