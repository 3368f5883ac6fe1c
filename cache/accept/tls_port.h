// Port 443: reads the server's name from the ClientHello and decides. A configured host with `tls: intercept` for which
// there is a certificate is answered here, as on port 80; every other configured host is relayed (sni_relay.h), also
// when its certificate is missing, and so is a client that offers other protocols than HTTP/1.1 only. A name that is no
// configured host gets the TLS alert unrecognized_name.
// Threads: the loop's own.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "cache/accept/certificates.h"
#include "cache/accept/client_hello.h"
#include "cache/accept/sni_relay.h"
#include "cache/request/session.h"
#include "nezha/net/tls.h"

namespace nezha::cache {

struct TlsPortDeps {
  SniRelayDeps& relay;
  SessionDeps& session;
  const Certificates& certificates;
  net::TlsScratch& scratch;
  obs::Counter& terminated;
  obs::Counter& handshake_failures;
  obs::Counter& uncovered;
  std::set<std::string> warned{};  // hosts whose missing certificate is in the log already
};

// Serves until the connection has ended. `may_intercept` false: the port only relays (listen.relay). `idle` as for
// run_session().
net::Task<> run_tls_port(TlsPortDeps& deps, std::unique_ptr<net::Stream> client, bool may_intercept, bool& idle);

}  // namespace nezha::cache
