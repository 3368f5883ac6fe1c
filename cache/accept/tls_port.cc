#include "cache/accept/tls_port.h"

#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

// What this host is answered with; null when its connections are relayed.
std::shared_ptr<const net::TlsServer> identity_for(TlsPortDeps& deps, const config::Upstream& upstream,
                                                   const ClientHello& hello) {
  if (upstream.tls != config::TlsMode::kIntercept || !hello.accepts_http1) return nullptr;
  auto identity = deps.certificates.find(hello.server_name);
  if (identity) return identity;
  deps.uncovered.add();
  if (deps.warned.insert(hello.server_name).second) {
    deps.relay.log.warning("no certificate for a host with tls: intercept; its connections are relayed, not cached",
                           {{"host", hello.server_name}});
  }
  return nullptr;
}

net::Task<> terminate(TlsPortDeps& deps, const net::TlsServer& identity, std::unique_ptr<net::Stream> client,
                      std::string hello_bytes, std::string server_name, SteadyTime until, bool& idle) {
  auto stream = co_await net::accept_tls(identity, deps.scratch, std::move(client), hello_bytes, until);
  if (!stream) {
    deps.handshake_failures.add();
    deps.relay.log.debug("TLS connection failed", {{"host", server_name}, {"reason", stream.error().message}});
    co_return;
  }
  deps.terminated.add();
  Arrival arrival{true, std::move(server_name)};
  co_await run_session(deps.session, std::move(stream.value()), idle, std::move(arrival));
}

}  // namespace

net::Task<> run_tls_port(TlsPortDeps& deps, std::unique_ptr<net::Stream> client, bool may_intercept, bool& idle) {
  const SteadyTime until = deps.relay.clock.now() + limits::kHeadTimeout;
  std::string hello_bytes;
  const auto read = co_await read_hello(*client, hello_bytes, until);
  if (!read) co_return client->close(false);
  const ClientHello& hello = read.value();
  const auto routes = deps.relay.routes.current();
  const auto* upstream = hello.kind == ClientHello::Kind::kDone ? routes->find(hello.server_name) : nullptr;
  if (!upstream) {
    const std::string reason = "server name \"" + hello.server_name + "\" is no configured host";
    co_await refuse_tls(deps.relay, *client, reason);
    co_return;
  }
  const auto identity = may_intercept ? identity_for(deps, *upstream, hello) : nullptr;
  std::string host = hello.server_name;
  if (identity)
    co_await terminate(deps, *identity, std::move(client), std::move(hello_bytes), std::move(host), until, idle);
  else
    co_await run_sni_relay(deps.relay, std::move(client), *upstream, std::move(host), std::move(hello_bytes));
}

}  // namespace nezha::cache
