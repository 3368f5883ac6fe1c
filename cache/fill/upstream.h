// Upstream: connections to origins, pooled per loop, and the exchange of one request for one response head.
// An https origin is spoken to over TLS, its certificate checked against the system's roots.
// DNS answers and endpoints are all used: each new connection starts with the next address and tries the others when
// one fails; with endpoints, so does each request. An address that failed comes last for a while, and what rests there
// is not used. Threads: the loop's own.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/classify/classify.h"
#include "cache/wire/connection.h"
#include "nezha/base/clock.h"
#include "nezha/net/loop.h"
#include "nezha/net/resolver.h"
#include "nezha/net/tls.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"

namespace nezha::cache {

class UpstreamPool {
 public:
  struct Deps {
    net::Loop& loop;
    net::Resolver& resolver;
    const net::TlsClient& tls;
    net::TlsScratch& scratch;
    const Clock& clock;
    obs::Log& log;
    obs::Metrics& metrics;
  };
  explicit UpstreamPool(Deps deps);

  struct Acquired {
    std::unique_ptr<Connection> connection;
    bool reused = false;  // from the pool: it may turn out to be closed, then ask for a fresh one
    Origin origin;        // the one of several that it leads to
  };
  // `not_at`: addresses that will not do.
  // Fails with kAbsent (no such name), kTimedOut or kRetryLater (nobody answers, or a certificate that does not hold);
  // the message names the origin.
  net::Task<Result<Acquired>> acquire(Origin origin, bool fresh, std::vector<std::string> not_at);
  // Gives a connection back whose last exchange ended completely. One that holds more bytes than were announced, now or
  // when it would be used again, is closed: they must not be taken for an answer.
  void release(const Origin& origin, std::unique_ptr<Connection> connection);
  // An address at which an exchange failed before anything of an answer came: it comes last for a while, for longer
  // when that was found out by waiting.
  void distrust(const std::string& address, bool silent);
  void trust(const std::string& address);
  // Drops idle connections: all of them, or those idle for too long.
  void trim(bool all);
  net::Loop& loop() { return deps_.loop; }
  const Clock& clock() const { return deps_.clock; }

 private:
  struct Candidate {
    Origin origin;
    net::SocketAddress address;
  };
  net::Task<Result<std::vector<Candidate>>> candidates(const Origin& origin);
  std::unique_ptr<Connection> take_idle(const Origin& origin, const std::string& address);
  std::optional<Acquired> take_any_idle(const Origin& origin, const std::vector<std::string>& not_at);
  bool is_down(const std::string& address) const;
  void note_failure(const std::string& address, const std::string& reason, std::chrono::milliseconds down_for);
  net::Task<Result<std::unique_ptr<net::Stream>>> connect(const Origin& origin, net::SocketAddress address,
                                                          SteadyTime deadline);
  struct Idle {
    std::unique_ptr<Connection> connection;
    SteadyTime since;
  };
  Deps deps_;
  std::map<std::string, std::deque<Idle>> idle_;  // by origin, newest at the back
  std::map<std::string, SteadyTime> down_until_;  // addresses that failed
  size_t next_address_ = 0;
  SteadyTime idle_first_until_{};
  obs::Counter& connects_;
  obs::Counter& connect_failures_;
};

// One request under way: its connection and the final response head, body not yet read.
struct Exchange {
  Origin origin;
  std::unique_ptr<Connection> connection;
  http::ResponseHead head;
  WallTime request_time{};
  WallTime response_time{};
};

// Where a request's body comes from and interim responses go: the client's side of a relayed request.
class RequestSide {
 public:
  virtual ~RequestSide() = default;
  virtual bool has_body() const = 0;
  virtual bool expects_continue() const = 0;
  virtual http::Framing framing() const = 0;
  virtual net::Task<Result<size_t>> read_body(std::span<char> into) = 0;  // as Connection::read_body
  // Relays a 1xx response (RFC 9110 §15.2). A failure means the client is gone.
  virtual net::Task<Result<void>> interim(const http::ResponseHead& head) = 0;
};

// Sends `request` (fields ready for the wire) and reads the final response head. A pooled connection that was closed
// meanwhile, or says what is not HTTP before anything else, is replaced once, as long as nothing of a body was sent.
// `side` may be null: no body, interims dropped.
// Fails with kAbsent, kTimedOut, kRetryLater or kRetryHere (no connection, no answer) or kFixInput (the answer is not
// HTTP).
net::Task<Result<Exchange>> exchange(UpstreamPool& pool, Origin origin, const http::RequestHead& request,
                                     RequestSide* side);

}  // namespace nezha::cache
