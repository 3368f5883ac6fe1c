#include "cache/accept/sni_relay.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "cache/fill/connect_time.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr std::chrono::minutes kQuietMax{15};  // a relayed connection with no byte either way
constexpr std::chrono::seconds kQuietCheck{30};
constexpr uint16_t kHttpsPort = 443;
constexpr size_t kRandomEnd = 43;  // of a ClientHello in one record: behind it, the same hello may be cut differently
constexpr size_t kSameHellosMax = 8;  // one is right; more is a connection that comes back to us
constexpr char kUnrecognizedName[] = "\x15\x03\x01\x00\x02\x02\x70";

// One ClientHello in the book of those being relayed.
class HelloEntry {
 public:
  HelloEntry(std::unordered_map<uint64_t, size_t>& book, std::string_view hello)
      : book_(book), hash_(XXH3_64bits(hello.data(), std::min(hello.size(), kRandomEnd))), count_(++book_[hash_]) {}
  HelloEntry(const HelloEntry&) = delete;
  HelloEntry& operator=(const HelloEntry&) = delete;
  ~HelloEntry() {
    const auto found = book_.find(hash_);
    if (--found->second == 0) book_.erase(found);
  }
  bool loops() const { return count_ > kSameHellosMax; }

 private:
  std::unordered_map<uint64_t, size_t>& book_;
  const uint64_t hash_;
  const size_t count_;
};

// Both ends of one relayed connection and what the two directions share.
struct Pair {
  std::unique_ptr<net::Stream> client;
  std::unique_ptr<net::Stream> server;
  SteadyTime last_byte{};
  bool up_ended = false;
  net::Notification ended;
};

net::Task<Result<void>> copy(net::Stream& from, net::Stream& to, Pair& pair, const Clock& clock) {
  std::vector<char> buffer(limits::kRelayBytes);
  for (;;) {
    // A download is quiet on its sending side for as long as it takes: only both sides together are idle.
    while (!co_await from.wait_readable(kQuietCheck)) {
      if (clock.now() - pair.last_byte > kQuietMax)
        co_return fail(Remedy::kRetryLater, "no byte either way for too long");
    }
    NEZHA_CO_TRY(const size_t got, co_await from.read_some(buffer));
    pair.last_byte = clock.now();
    if (got == 0) {
      to.shutdown_send();
      co_return ok();
    }
    const std::array<std::string_view, 1> pieces{std::string_view(buffer.data(), got)};
    const net::ScopedDeadline deadline(to, clock.now() + limits::kBodyStallTimeout);
    NEZHA_CO_DO(co_await to.write(pieces));
  }
}

net::Task<> copy_up(std::shared_ptr<Pair> pair, const Clock& clock) {
  const auto result = co_await copy(*pair->client, *pair->server, *pair, clock);
  if (!result) pair->server->close(true);
  pair->up_ended = true;
  pair->ended.notify_all();
}

net::Task<Result<std::unique_ptr<net::Stream>>> dial(SniRelayDeps& deps, const config::Upstream& upstream,
                                                     const std::string& host) {
  const bool override = upstream.endpoint && upstream.endpoint->tls;
  std::vector<config::Endpoint> targets{{true, host, kHttpsPort}};
  if (override) targets = {*upstream.endpoint};
  if (override && upstream.more_endpoints)
    targets.insert(targets.end(), upstream.more_endpoints->begin(), upstream.more_endpoints->end());
  std::vector<net::SocketAddress> addresses;
  Error last{Remedy::kRetryLater, "no address"};
  for (const auto& target : targets) {
    auto resolved = co_await deps.resolver.resolve(target.host, !override);
    if (!resolved) last = resolved.error();
    if (!resolved) continue;
    for (const auto& ip : resolved.value()) addresses.push_back({ip, target.port});
  }
  const size_t first = deps.next_address++;
  const SteadyTime end = deps.clock.now() + limits::kConnectTimeout;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const auto& address = addresses[(first + i) % addresses.size()];
    auto stream = co_await deps.loop.connect(address, connect_deadline(deps.clock.now(), end, addresses.size() - i));
    if (stream) co_return std::move(stream.value());
    last = stream.error();
  }
  co_return last;
}

}  // namespace

net::Task<Result<ClientHello>> read_hello(net::Stream& client, std::string& bytes, SteadyTime until) {
  const net::ScopedDeadline deadline(client, until);
  std::array<char, 4096> buffer;
  for (;;) {
    NEZHA_CO_TRY(const size_t got, co_await client.read_some(buffer));
    if (got == 0) co_return fail(Remedy::kRetryLater, "the client left before its ClientHello was complete");
    bytes.append(buffer.data(), got);
    ClientHello hello = parse_client_hello(bytes);
    if (hello.kind != ClientHello::Kind::kNeedMore) co_return hello;
  }
}

net::Task<> refuse_tls(SniRelayDeps& deps, net::Stream& client, std::string reason) {
  deps.refused.add();
  deps.log.debug("TLS connection refused", {{"reason", reason}});
  const std::array<std::string_view, 1> alert{std::string_view(kUnrecognizedName, sizeof kUnrecognizedName - 1)};
  const net::ScopedDeadline deadline(client, deps.clock.now() + limits::kHeadTimeout);
  (void)co_await client.write(alert);
  client.close(false);
}

net::Task<> run_sni_relay(SniRelayDeps& deps, std::unique_ptr<net::Stream> client, const config::Upstream& upstream,
                          std::string host, std::string hello_bytes) {
  const HelloEntry entry(deps.hellos, hello_bytes);
  if (entry.loops()) {
    deps.log.warning("TLS connection comes back through its own upstream", {{"host", host}});
    const std::string reason = "the upstream's name leads back to the cache";
    co_await refuse_tls(deps, *client, reason);
    co_return;
  }
  auto server = co_await dial(deps, upstream, host);
  if (!server) {
    deps.refused.add();
    deps.log.warning("upstream failed", {{"host", host}, {"reason", server.error().message}});
    co_return client->close(true);
  }
  const auto pair = std::make_shared<Pair>();
  pair->last_byte = deps.clock.now();
  pair->client = std::move(client);
  pair->server = std::move(server.value());
  const std::array<std::string_view, 1> pieces{hello_bytes};
  const Result<void> sent = co_await pair->server->write(pieces);
  if (!sent) co_return pair->client->close(true);
  deps.relayed.add();
  deps.gate.spawn(copy_up(pair, deps.clock));
  const auto down = co_await copy(*pair->server, *pair->client, *pair, deps.clock);
  if (!down) pair->client->close(true);
  while (!pair->up_ended) {
    const uint64_t version = pair->ended.version();
    if (pair->up_ended) break;
    co_await pair->ended.wait(version);
  }
  pair->client->close(false);
  pair->server->close(false);
}

}  // namespace nezha::cache
