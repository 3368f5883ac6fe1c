#include "cache/accept/server.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <list>
#include <random>
#include <thread>

#include "cache/accept/tls_port.h"
#include "cache/fill/flight.h"
#include "cache/request/session.h"
#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr std::chrono::milliseconds kPollEvery{50};
constexpr std::chrono::seconds kHousekeepEvery{5};
constexpr std::chrono::milliseconds kTurnEvery{250};
constexpr std::chrono::seconds kTearDownMax{15};

std::string make_loop_id() {
  std::random_device device;
  char id[32];
  std::snprintf(id, sizeof id, "nezha-%08x%08x", device(), device());
  return id;
}

enum class Port { kHttp, kTls, kRelay };

// What the loops share.
struct Shared {
  explicit Shared(obs::Metrics& metrics) : request_metrics(metrics), loop_id(make_loop_id()) {}
  FlightTable flights;
  PieceBuffers buffers;
  RequestMetrics request_metrics;
  const std::string loop_id;
};

// Everything of one loop. Used by its thread alone, but for the atomics and post().
class LoopServer {
 public:
  LoopServer(ServerDeps& deps, Shared& shared, size_t connections_max)
      : deps_(deps),
        loop_(net::make_loop()),
        pool_({*loop_, deps.resolver, *deps.tls_client, scratch_, deps.clock, deps.log, deps.metrics}),
        gate_(loop_->executor()),
        fills_(loop_->executor()),
        connections_max_(connections_max),
        session_deps_{
            deps.routes,
            deps.store,
            shared.flights,
            {deps.store, deps.workers, shared.buffers,
             deps.metrics.counter("nezha_cache_stored_bytes_total", "Body bytes written to a tier"),
             deps.metrics.counter("nezha_cache_incomplete_fills_total", "Bodies that ended early"),
             deps.metrics.counter("nezha_cache_not_admitted_total", "Bodies relayed only: not worth their room"),
             deps.metrics.counter("nezha_cache_fetched_parts_total", "Parts of large bodies that came by themselves")},
            pool_,
            fills_,
            deps.clock,
            deps.log,
            shared.request_metrics,
            shared.loop_id,
            send_meter_,
            deps.keys,
            deps.approvals,
            deps.fetches,
            draining_},
        sni_deps_{deps.routes,
                  *loop_,
                  deps.resolver,
                  gate_,
                  deps.clock,
                  deps.log,
                  deps.metrics.counter("nezha_cache_tls_relayed_total", "TLS connections relayed by server name"),
                  deps.metrics.counter("nezha_cache_tls_refused_total",
                                       "TLS connections refused: unknown name or dead upstream")},
        tls_deps_{sni_deps_,
                  session_deps_,
                  deps.certificates,
                  scratch_,
                  deps.metrics.counter("nezha_cache_tls_terminated_total", "TLS connections answered from the cache"),
                  deps.metrics.counter("nezha_cache_tls_handshake_failures_total", "TLS handshakes that failed"),
                  deps.metrics.counter("nezha_cache_tls_uncovered_total",
                                       "TLS connections relayed for want of a certificate")} {
    loop_->every(kHousekeepEvery, [this] { pool_.trim(false); });
    loop_->every(kTurnEvery, [this] { last_turn_ = deps_.clock.now(); });
  }

  Result<void> listen(const net::BoundSocket& socket, Port port) {
    NEZHA_TRY(auto listener, loop_->listen_on(socket));
    listeners_.push_back({std::move(listener), port});
    return ok();
  }
  void accept() {
    loop_->post([this] {
      if (draining_) return;
      for (auto& each : listeners_) gate_.spawn(accept_loop(*each.listener, each.port));
    });
  }

  // Ends what still runs, on the calling thread: the loop's own has ended.
  ~LoopServer() {
    draining_ = true;
    for (auto& each : listeners_) each.listener->close();
    pool_.trim(true);
    loop_->expire_all();
    loop_->run_until([this] { return gate_.size() + fills_.size() == 0; }, deps_.clock.now() + kTearDownMax);
  }

  void run() { loop_->run(); }
  void begin_drain() {
    loop_->post([this] {
      draining_ = true;
      for (auto& each : listeners_) each.listener->close();
      for (auto& open : open_) {
        if (open.idle) open.stream->set_deadline(deps_.clock.now());
      }
    });
  }
  void cut() {
    loop_->post([this] {
      pool_.trim(true);
      loop_->expire_all();
    });
  }
  void stop() { loop_->stop(); }
  // Any thread: what still runs.
  size_t busy() {
    std::promise<size_t> size;
    auto future = size.get_future();
    loop_->post([this, &size] { size.set_value(gate_.size() + fills_.size()); });
    return future.get();
  }
  size_t connections() const { return connections_.load(std::memory_order_relaxed); }
  SteadyTime last_turn() const { return last_turn_; }

 private:
  struct Listening {
    std::unique_ptr<net::Listener> listener;
    Port port = Port::kHttp;
  };
  struct Open {
    net::Stream* stream;
    bool idle = false;
  };

  net::Task<> accept_loop(net::Listener& listener, Port port) {
    for (;;) {
      auto stream = co_await listener.accept();
      if (!stream) co_return;
      if (connections() >= connections_max_) continue;  // closed at once: better than to starve those we have
      gate_.spawn(serve(std::move(stream.value()), port));
    }
  }

  net::Task<> serve(std::unique_ptr<net::Stream> stream, Port port) {
    connections_.fetch_add(1, std::memory_order_relaxed);
    const auto entry = open_.insert(open_.end(), Open{stream.get()});
    Arrival plain;
    if (port != Port::kHttp)
      co_await run_tls_port(tls_deps_, std::move(stream), port == Port::kTls, entry->idle);
    else
      co_await run_session(session_deps_, std::move(stream), entry->idle, std::move(plain));
    open_.erase(entry);
    connections_.fetch_sub(1, std::memory_order_relaxed);
  }

  ServerDeps& deps_;
  std::unique_ptr<net::Loop> loop_;
  net::TlsScratch scratch_;
  UpstreamPool pool_;
  net::Gate gate_;
  net::Gate fills_;
  size_t connections_max_;
  bool draining_ = false;
  SendMeter send_meter_;
  SessionDeps session_deps_;
  SniRelayDeps sni_deps_;
  TlsPortDeps tls_deps_;
  std::vector<Listening> listeners_;
  std::list<Open> open_;
  std::atomic<size_t> connections_{0};
  std::atomic<SteadyTime> last_turn_{deps_.clock.now()};
};

class LoopsServer final : public Server {
 public:
  explicit LoopsServer(ServerDeps deps) : deps_(deps), shared_(deps.metrics) {}

  Result<void> start(const ListeningSockets& sockets, size_t loops) {
    for (size_t i = 0; i < loops; ++i) {
      loops_.push_back(std::make_unique<LoopServer>(deps_, shared_, limits::kConnectionsMax / loops));
    }
    NEZHA_TRY(take(sockets.http, Port::kHttp, http_));
    NEZHA_TRY(take(sockets.https, Port::kTls, https_));
    NEZHA_TRY(take(sockets.relay, Port::kRelay, relay_));
    for (auto& loop : loops_) threads_.emplace_back([raw = loop.get()] { raw->run(); });
    return ok();
  }

  // While all loops still run: a session of one may wait for a fill of another.
  ~LoopsServer() override {
    if (!threads_.empty()) {
      for (auto& loop : loops_) loop->begin_drain();
      cut_until_idle(deps_.clock.now() + kTearDownMax);
    }
    for (auto& loop : loops_) loop->stop();
    for (auto& thread : threads_) thread.join();
  }

  std::vector<net::SocketAddress> http_addresses() const override { return http_; }
  std::vector<net::SocketAddress> https_addresses() const override { return https_; }
  std::vector<net::SocketAddress> relay_addresses() const override { return relay_; }
  size_t connections() const override {
    size_t total = 0;
    for (const auto& loop : loops_) total += loop->connections();
    return total;
  }

  void accept() override {
    for (auto& loop : loops_) loop->accept();
  }
  SteadyTime last_turn() const override {
    SteadyTime out = SteadyTime::max();
    for (const auto& loop : loops_) out = std::min(out, loop->last_turn());
    return out;
  }

  bool drain(SteadyTime deadline) override {
    for (auto& loop : loops_) loop->begin_drain();
    const bool by_itself = wait_until_idle(deadline);
    if (!by_itself) cut_until_idle(deps_.clock.now() + kTearDownMax);
    return by_itself;
  }

 private:
  Result<void> take(const std::vector<ListeningSockets::OfAddress>& sockets, Port port,
                    std::vector<net::SocketAddress>& bound) {
    for (const auto& of_address : sockets) {
      NEZHA_CHECK(of_address.size() == loops_.size(), "each loop has its own socket");
      for (size_t i = 0; i < loops_.size(); ++i) {
        NEZHA_TRY(loops_[i]->listen(of_address[i], port));
      }
      bound.push_back(of_address.front().address());
    }
    return ok();
  }

  bool is_idle() {
    return std::all_of(loops_.begin(), loops_.end(), [](auto& loop) { return loop->busy() == 0; });
  }

  // Again and again: what was cut may open another connection before it notices.
  void cut_until_idle(SteadyTime deadline) {
    while (!is_idle() && deps_.clock.now() < deadline) {
      for (auto& loop : loops_) loop->cut();
      std::this_thread::sleep_for(kPollEvery);
    }
  }

  bool wait_until_idle(SteadyTime deadline) {
    for (;;) {
      if (is_idle()) return true;
      if (deps_.clock.now() >= deadline) return false;
      std::this_thread::sleep_for(kPollEvery);
    }
  }

  ServerDeps deps_;
  Shared shared_;
  std::vector<std::unique_ptr<LoopServer>> loops_;
  std::vector<std::thread> threads_;
  std::vector<net::SocketAddress> http_, https_, relay_;
};

Result<void> open_for(const std::vector<config::ListenAddress>& addresses, size_t loops,
                      std::vector<ListeningSockets::OfAddress>& into) {
  for (const auto& address : addresses) {
    net::SocketAddress wanted{address.host, address.port};
    NEZHA_TRY(net::check_unused(wanted));
    ListeningSockets::OfAddress sockets;
    for (size_t i = 0; i < loops; ++i) {
      NEZHA_TRY(auto socket, net::bind_socket(wanted));
      wanted = socket.address();  // port 0: the other loops share the first one's choice
      sockets.push_back(std::move(socket));
    }
    into.push_back(std::move(sockets));
  }
  return ok();
}

}  // namespace

Result<ListeningSockets> open_sockets(const config::ListenSettings& listen, size_t loops) {
  ListeningSockets out;
  NEZHA_TRY(open_for(listen.http, loops, out.http));
  NEZHA_TRY(open_for(listen.https, loops, out.https));
  NEZHA_TRY(open_for(listen.relay, loops, out.relay));
  return out;
}

Result<std::unique_ptr<Server>> start_server(ServerDeps deps, ListeningSockets sockets, size_t loops) {
  auto server = std::make_unique<LoopsServer>(deps);
  NEZHA_TRY(server->start(sockets, loops));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace nezha::cache
