#include "cache/fill/upstream.h"

#include <algorithm>
#include <array>

#include "cache/fill/connect_time.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr size_t kIdlePerOriginMax = 256;
constexpr std::chrono::seconds kDownFor{10};              // an address that failed, before it is tried as others are
constexpr std::chrono::seconds kSilentFor{60};            // one at which a request was waited for in vain
constexpr size_t kOthersTriedMax = 3;                     // of several addresses, after one took a request and died
constexpr std::chrono::milliseconds kContinueWait{1500};  // clients send their body about then without a 100

// Or clients would wait for a silent one most of the time.
static_assert(kSilentFor >= limits::kBodyStallTimeout);

std::string text_of(const Origin& origin) {
  return (origin.tls ? "https://" : "") + origin.host + ":" + std::to_string(origin.port);
}

// A TLS connection is for one server name.
std::string pool_key(const Origin& origin) {
  return origin.tls ? text_of(origin) + "/" + origin.server_name : text_of(origin);
}

// The one it names first, and the others that will do.
std::vector<Origin> all_of(const Origin& origin) {
  std::vector<Origin> out{origin};
  if (!origin.more) return out;
  for (const auto& endpoint : *origin.more) {
    out.push_back(origin);
    out.back().host = endpoint.host;
    out.back().port = endpoint.port;
  }
  return out;
}

bool contains(const std::vector<std::string>& addresses, const std::string& address) {
  return std::find(addresses.begin(), addresses.end(), address) != addresses.end();
}

// "4\r\n" … "0\r\n\r\n".
std::string chunk_size_line(size_t bytes) {
  char line[20];
  const int size = std::snprintf(line, sizeof line, "%zx\r\n", bytes);
  return {line, static_cast<size_t>(size)};
}

}  // namespace

UpstreamPool::UpstreamPool(Deps deps)
    : deps_(deps),
      connects_(deps.metrics.counter("nezha_cache_upstream_connections_total", "Connections opened to upstreams")),
      connect_failures_(deps.metrics.counter("nezha_cache_upstream_connect_failures_total",
                                             "Addresses of upstreams that could not be connected")) {}

// The newest of those that rest at this address.
std::unique_ptr<Connection> UpstreamPool::take_idle(const Origin& origin, const std::string& address) {
  const auto found = idle_.find(pool_key(origin));
  if (found == idle_.end()) return nullptr;
  auto& idle = found->second;
  for (size_t i = idle.size(); i-- > 0;) {
    if (idle[i].connection->peer() != address) continue;
    auto connection = std::move(idle[i].connection);
    idle.erase(idle.begin() + static_cast<ptrdiff_t>(i));
    if (connection->stream().is_quiet()) return connection;
  }
  return nullptr;
}

// From the addresses at which connections rest, in turn.
std::optional<UpstreamPool::Acquired> UpstreamPool::take_any_idle(const Origin& origin,
                                                                  const std::vector<std::string>& not_at) {
  std::vector<std::pair<Origin, std::string>> places;
  for (const Origin& each : all_of(origin)) {
    const auto found = idle_.find(pool_key(each));
    if (found == idle_.end()) continue;
    const size_t begin = places.size();
    for (const auto& idle : found->second) {
      const std::string& address = idle.connection->peer();
      const auto same = [&](const auto& place) { return place.second == address; };
      const bool known = std::any_of(places.begin() + static_cast<ptrdiff_t>(begin), places.end(), same);
      if (!known && !contains(not_at, address) && !is_down(address)) places.emplace_back(each, address);
    }
  }
  if (places.empty()) return std::nullopt;
  const size_t first = next_address_++;
  for (size_t i = 0; i < places.size(); ++i) {
    const auto& [each, address] = places[(first + i) % places.size()];
    if (auto connection = take_idle(each, address)) return Acquired{std::move(connection), true, each};
  }
  return std::nullopt;
}

// Where to connect, in the order of trying. Fails when none of the names has an address.
net::Task<Result<std::vector<UpstreamPool::Candidate>>> UpstreamPool::candidates(const Origin& origin) {
  std::vector<Candidate> out;
  Error last{Remedy::kRetryLater, "no address"};
  for (const Origin& each : all_of(origin)) {
    auto resolved = co_await deps_.resolver.resolve(each.host, each.absolute);
    if (!resolved) {
      last = resolved.error();
      continue;
    }
    for (const auto& ip : resolved.value()) out.push_back({each, {ip, each.port}});
  }
  if (out.empty()) co_return last;
  std::rotate(out.begin(), out.begin() + static_cast<ptrdiff_t>(next_address_++ % out.size()), out.end());
  std::stable_partition(out.begin(), out.end(),
                        [&](const Candidate& candidate) { return !is_down(candidate.address.text()); });
  co_return out;
}

bool UpstreamPool::is_down(const std::string& address) const {
  const auto down = down_until_.find(address);
  return down != down_until_.end() && down->second > deps_.clock.now();
}

void UpstreamPool::note_failure(const std::string& address, const std::string& reason,
                                std::chrono::milliseconds down_for) {
  SteadyTime& until = down_until_[address];
  const SteadyTime now = deps_.clock.now();
  if (until <= now)
    deps_.log.warning("an upstream's address fails; others go first for a while",
                      {{"address", address}, {"reason", reason}});
  until = std::max(until, now + down_for);
}

net::Task<Result<UpstreamPool::Acquired>> UpstreamPool::acquire(Origin origin, bool fresh,
                                                                std::vector<std::string> not_at) {
  // A name of the world may have other addresses every few seconds: what rests is used up before any is dialled.
  // Endpoints are few and stay: each takes its turn.
  if (!fresh && (origin.absolute || deps_.clock.now() < idle_first_until_)) {
    if (auto idle = take_any_idle(origin, not_at)) co_return std::move(*idle);
  }
  auto found = co_await candidates(origin);
  if (!found && !fresh) {
    idle_first_until_ = deps_.clock.now() + kDownFor;  // without DNS, waiting for it helps nobody
    if (auto idle = take_any_idle(origin, not_at)) co_return std::move(*idle);
  }
  if (!found) co_return found.error();
  auto& order = found.value();
  std::erase_if(order, [&](const Candidate& each) { return contains(not_at, each.address.text()); });
  const SteadyTime end = deps_.clock.now() + limits::kConnectTimeout;
  Error last{Remedy::kRetryLater, "no other address"};
  for (size_t i = 0; i < order.size(); ++i) {
    const std::string address = order[i].address.text();
    if (auto connection = fresh ? nullptr : take_idle(order[i].origin, address))
      co_return Acquired{std::move(connection), true, order[i].origin};
    const SteadyTime deadline = connect_deadline(deps_.clock.now(), end, order.size() - i);
    auto stream = co_await connect(order[i].origin, order[i].address, deadline);
    if (stream) {
      connects_.add();
      auto connection = std::make_unique<Connection>(std::move(stream.value()));
      connection->set_peer(address);
      co_return Acquired{std::move(connection), false, order[i].origin};
    }
    connect_failures_.add();
    last = stream.error();
    if (order.size() > 1) note_failure(address, last.message, kDownFor);
  }
  co_return fail(last.remedy, "upstream " + text_of(origin) + ": " + last.message);
}

void UpstreamPool::distrust(const std::string& address, bool silent) {
  note_failure(address, "it took a request and did not answer", silent ? kSilentFor : kDownFor);
}

void UpstreamPool::trust(const std::string& address) {
  if (!down_until_.empty()) down_until_.erase(address);
}

net::Task<Result<std::unique_ptr<net::Stream>>> UpstreamPool::connect(const Origin& origin, net::SocketAddress address,
                                                                      SteadyTime deadline) {
  auto stream = co_await deps_.loop.connect(address, deadline);
  if (!stream || !origin.tls) co_return stream;
  net::TlsNames names{origin.server_name, origin.host};
  co_return co_await net::connect_tls(deps_.tls, deps_.scratch, std::move(stream.value()), std::move(names), deadline);
}

void UpstreamPool::release(const Origin& origin, std::unique_ptr<Connection> connection) {
  if (connection->has_buffered()) return;  // bytes nobody asked for: not a connection to trust
  auto& idle = idle_[pool_key(origin)];
  if (idle.size() >= kIdlePerOriginMax) return;
  idle.push_back({std::move(connection), deps_.clock.now()});
}

void UpstreamPool::trim(bool all) {
  const SteadyTime oldest = deps_.clock.now() - limits::kUpstreamIdleTimeout;
  for (auto& [key, idle] : idle_) {
    while (!idle.empty() && (all || idle.front().since < oldest)) idle.pop_front();
  }
  std::erase_if(idle_, [](const auto& entry) { return entry.second.empty(); });
  std::erase_if(down_until_, [&](const auto& entry) { return entry.second <= deps_.clock.now(); });
}

namespace {

// One attempt on one connection.
class Attempt {
 public:
  Attempt(UpstreamPool& pool, Connection& connection, const http::RequestHead& request, RequestSide* side)
      : pool_(pool), connection_(connection), request_(request), side_(side) {}

  // After a failure: whether it was that of a connection which had ended, or still carried more of its last answer than
  // that had announced. Then nobody has seen this attempt, and another connection may do better.
  bool may_repeat() const { return !body_begun_ && !client_failed_ && (is_untouched() || refused_first_); }
  // Whether the upstream is to blame: it took what there was, and said nothing.
  bool was_left_alone() const { return !client_failed_ && is_untouched(); }

  net::Task<Result<http::ResponseHead>> run() {
    const std::string text = http::serialise(request_);
    const std::array<std::string_view, 1> pieces{text};
    {
      const net::ScopedDeadline deadline(connection_.stream(), stall_deadline());
      NEZHA_CO_DO(co_await connection_.stream().write(pieces));
    }
    if (side_ && side_->has_body()) NEZHA_CO_DO(co_await send_body());
    while (!final_) NEZHA_CO_DO(co_await read_head());
    // The upstream still waits for the rest of this request: the next one on this connection would be taken for it.
    if (side_ && side_->has_body() && !body_sent_) final_->keep_alive = false;
    co_return std::move(*final_);
  }

 private:
  bool is_untouched() const { return connection_.received_bytes() == received_before_; }
  SteadyTime stall_deadline() const { return pool_.clock().now() + limits::kBodyStallTimeout; }

  // Reads one head: relays an interim one, keeps a final one.
  net::Task<Result<void>> read_head() {
    const net::ScopedDeadline deadline(connection_.stream(), stall_deadline());
    http::ResponseHead head;
    auto step = co_await connection_.read_response_head(request_.method == "HEAD", head);
    if (!step) co_return step.error();
    if (step.value().kind == http::HeadStep::Kind::kNeedMore)
      co_return fail(Remedy::kRetryHere, "the upstream closed the connection without an answer");
    refused_first_ = step.value().kind == http::HeadStep::Kind::kBad && interims_ == 0;
    if (step.value().kind == http::HeadStep::Kind::kBad)
      co_return fail(Remedy::kFixInput, "the upstream's answer is not valid HTTP: " + step.value().reason);
    if (head.status == 101) co_return fail(Remedy::kFixInput, "the upstream switched protocols without being asked");
    if (head.status >= 200) {
      final_ = std::move(head);
      co_return ok();
    }
    continued_ |= head.status == 100;
    if (++interims_ > limits::kInterimsMax) co_return fail(Remedy::kFixInput, "the upstream sends 1xx without end");
    if (!side_) co_return ok();
    const Result<void> relayed = co_await side_->interim(head);
    client_failed_ = !relayed;
    co_return relayed;
  }

  // Until a 100 or a final answer comes, or the client has waited long enough to send its body anyway.
  net::Task<Result<void>> await_continue() {
    while (!final_ && !continued_) {
      if (!connection_.has_buffered()) {
        const bool answered = co_await connection_.stream().wait_readable(kContinueWait);
        if (!answered) co_return ok();
      }
      NEZHA_CO_DO(co_await read_head());
    }
    co_return ok();
  }

  net::Task<Result<void>> send_body() {
    if (side_->expects_continue()) NEZHA_CO_DO(co_await await_continue());
    const bool chunked = side_->framing().kind == http::Framing::Kind::kChunked;
    std::vector<char> buffer(limits::kRelayBytes);
    uint64_t sent_bytes = 0;
    while (!final_) {
      // An upstream that answers before the body's end has decided: no more of it is sent (RFC 9112 §9.5).
      if (connection_.has_buffered() || !connection_.stream().is_quiet()) {
        NEZHA_CO_DO(co_await read_head());
        continue;
      }
      const Result<size_t> read = co_await side_->read_body(buffer);
      client_failed_ = !read;
      if (!read) co_return read.error();
      const size_t got = read.value();
      body_begun_ = true;
      const Result<void> sent = co_await send_piece({buffer.data(), got}, chunked);
      if (!sent) {
        // Refused half-way: the answer may already be waiting.
        while (!final_) NEZHA_CO_DO(co_await read_head());
        break;
      }
      sent_bytes += got;
      const bool by_length = side_->framing().kind == http::Framing::Kind::kLength;
      body_sent_ = got == 0 || (by_length && sent_bytes == side_->framing().length_bytes);
      if (body_sent_) break;
    }
    co_return ok();
  }

  net::Task<Result<void>> send_piece(std::string_view bytes, bool chunked) {
    const std::string line = chunked ? chunk_size_line(bytes.size()) : "";
    const std::array<std::string_view, 3> pieces{line, bytes, chunked ? "\r\n" : ""};
    const net::ScopedDeadline deadline(connection_.stream(), stall_deadline());
    co_return co_await connection_.stream().write(pieces);
  }

  UpstreamPool& pool_;
  Connection& connection_;
  const http::RequestHead& request_;
  RequestSide* side_;
  const uint64_t received_before_ = connection_.received_bytes();
  bool body_begun_ = false;
  bool client_failed_ = false;
  bool refused_first_ = false;  // what should have been the first head is no HTTP
  bool body_sent_ = false;
  bool continued_ = false;
  size_t interims_ = 0;
  std::optional<http::ResponseHead> final_;
};

}  // namespace

net::Task<Result<Exchange>> exchange(UpstreamPool& pool, Origin origin, const http::RequestHead& request,
                                     RequestSide* side) {
  // Only what may be repeated goes over a connection that may be closed already (RFC 9112 §9.3.1).
  const bool repeatable = request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS" ||
                          request.method == "PUT" || request.method == "DELETE";
  bool fresh = !repeatable;
  // Another endpoint is asked only what changes nothing: the first one may still be at work on a write.
  const bool safe = repeatable && request.method != "PUT" && request.method != "DELETE";
  size_t others = safe && origin.more ? std::min(origin.more->size(), kOthersTriedMax) : 0;
  std::vector<std::string> failed;  // addresses
  std::optional<Error> last;
  for (;;) {
    Exchange out;
    out.request_time = pool.clock().wall();
    auto acquired = co_await pool.acquire(origin, fresh, failed);
    if (!acquired) co_return failed.empty() ? acquired.error() : *last;
    const bool reused = acquired.value().reused;
    out.origin = std::move(acquired.value().origin);
    out.connection = std::move(acquired.value().connection);
    const std::string address = out.connection->peer();
    Attempt attempt(pool, *out.connection, request, side);
    auto head = co_await attempt.run();
    if (head) {
      pool.trust(address);
      out.head = std::move(head.value());
      out.response_time = pool.clock().wall();
      out.connection->begin_body(out.head.framing);
      co_return out;
    }
    last = head.error();
    // One that rested may just have been closed; what waits in vain says more.
    const bool silent = last->remedy == Remedy::kTimedOut;
    const bool blamed = !reused || silent;
    if (blamed && attempt.was_left_alone()) pool.distrust(address, silent);
    if (!attempt.may_repeat() || (!reused && others == 0)) co_return *last;
    if (blamed && others > 0) {
      failed.push_back(address);
      --others;
    }
    fresh = true;
  }
}

}  // namespace nezha::cache
