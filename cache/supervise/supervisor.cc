#include "cache/supervise/supervisor.h"

#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "cache/accept/sni_relay.h"
#include "cache/supervise/child_process.h"
#include "cache/supervise/drop_queue.h"
#include "cache/supervise/http_relay.h"
#include "cache/supervise/link.h"
#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr std::chrono::milliseconds kTickEvery{100};
constexpr std::chrono::seconds kRestartDelayMax{30};
constexpr std::chrono::seconds kStableAfter{30};    // who lived so long begins anew with the delays
constexpr std::chrono::seconds kAfterDrainMax{20};  // for a child to end once its drain time is over
constexpr int kBadConfiguration = 2;

std::string make_loop_id() {
  std::random_device device;
  char id[32];
  std::snprintf(id, sizeof id, "nezha-%08x%08x", device(), device());
  return id;
}

net::BoundSocket make_signal_descriptor() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  return net::BoundSocket(::signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC));
}

class Supervisor {
 public:
  Supervisor(const SupervisorOptions& options, ListeningSockets sockets, RouteStore& routes, ConfigSource& source,
             net::Resolver& resolver, obs::Log& log);
  ~Supervisor();
  int run();

 private:
  // kDead until the next start; kStarting until it says that it is ready and has made up for all writes; kLeaving once
  // it said so, was told to, or was killed.
  enum class Child { kDead, kStarting, kAccepting, kLeaving };

  void take_signals();
  void take_messages();
  void take_message(char message);
  void tick();
  void start_child();
  void reap();
  void note_end(int status);
  void send_drops();
  void kill_silent_child(SteadyTime now);
  void shut_down(const std::string& reason);
  void update_relay();
  net::Task<> accept_loop(std::shared_ptr<net::Listener> listener, bool tls);
  net::Task<> relay(std::unique_ptr<net::Stream> stream, bool tls);
  net::Task<> relay_tls(std::unique_ptr<net::Stream> stream);

  const SupervisorOptions& options_;
  ListeningSockets sockets_;
  ConfigSource& source_;
  obs::Log& log_;
  const SystemClock clock_;
  const std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();  // what the parts below count; nobody reads it
  const std::unique_ptr<net::Loop> loop_ = net::make_loop();
  const std::shared_ptr<const net::TlsClient> tls_ = net::make_tls_client("");
  net::TlsScratch scratch_;
  net::Gate gate_;
  UpstreamPool pool_;
  DropQueue drops_;
  HttpRelayDeps http_;
  SniRelayDeps sni_;
  ChildProcess process_;
  std::vector<std::shared_ptr<net::Listener>> listeners_;  // while we relay
  net::BoundSocket signals_;
  std::unique_ptr<net::Watch> signal_watch_, link_watch_;

  Child child_ = Child::kDead;
  bool was_ready_ = false;  // ever
  SteadyTime last_beat_{}, accepting_since_{}, leaving_until_{};
  SteadyTime start_at_{};
  std::chrono::seconds restart_delay_{0};
  size_t clients_ = 0;

  std::optional<SteadyTime> stop_until_;  // after SIGTERM
  int status_ = 0;
};

Supervisor::Supervisor(const SupervisorOptions& options, ListeningSockets sockets, RouteStore& routes,
                       ConfigSource& source, net::Resolver& resolver, obs::Log& log)
    : options_(options),
      sockets_(std::move(sockets)),
      source_(source),
      log_(log),
      gate_(loop_->executor()),
      pool_({*loop_, resolver, *tls_, scratch_, clock_, log, *metrics_}),
      http_{routes, pool_, drops_, clock_, log, make_loop_id()},
      sni_{
          routes,
          *loop_,
          resolver,
          gate_,
          clock_,
          log,
          metrics_->counter("nezha_cache_tls_relayed_total", "TLS connections relayed by server name"),
          metrics_->counter("nezha_cache_tls_refused_total", "TLS connections refused: unknown name or dead upstream")},
      process_(options.arguments, sockets_),
      signals_(make_signal_descriptor()) {
  NEZHA_CHECK(signals_.descriptor() >= 0, "signalfd");
}

Supervisor::~Supervisor() {
  for (auto& listener : listeners_) listener->close();
  loop_->expire_all();
  loop_->run_until([this] { return gate_.size() == 0; }, SteadyTime::max());
}

int Supervisor::run() {
  signal_watch_ = loop_->watch(signals_.descriptor(), [this] { take_signals(); });
  loop_->every(kTickEvery, [this] { tick(); });
  start_child();
  loop_->run();
  return status_;
}

void Supervisor::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.descriptor(), &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) shut_down("signal " + std::to_string(info.ssi_signo));
  }
  reap();
}

// All of them: the orphans of process 1, too.
void Supervisor::reap() {
  int status = 0;
  for (pid_t id = 0; (id = ::waitpid(-1, &status, WNOHANG)) > 0;) {
    if (id == process_.id()) note_end(status);
  }
}

void Supervisor::note_end(int status) {
  take_messages();  // what it said last
  const std::string how = WIFSIGNALED(status) ? "signal " + std::to_string(WTERMSIG(status))
                                              : "status " + std::to_string(WEXITSTATUS(status));
  const SteadyTime now = clock_.now();
  if (child_ == Child::kAccepting && now - accepting_since_ >= kStableAfter) restart_delay_ = {};
  const bool bad_configuration = WIFEXITED(status) && WEXITSTATUS(status) == kBadConfiguration && !was_ready_;
  child_ = Child::kDead;
  link_watch_.reset();
  drops_.detach();
  process_.forget();
  update_relay();
  if (stop_until_) return;
  if (bad_configuration) {
    status_ = kBadConfiguration;
    return shut_down("the cache refuses its configuration");
  }
  log_.error("the cache ended; relaying to the real servers until it is back",
             {{"how", how}, {"restart_in_seconds", std::to_string(restart_delay_.count())}});
  start_at_ = now + restart_delay_;
  restart_delay_ = std::clamp(restart_delay_ * 2, std::chrono::seconds(1), kRestartDelayMax);
  if (start_at_ <= now) start_child();
}

void Supervisor::start_child() {
  const SteadyTime now = clock_.now();
  const auto started = process_.start();
  if (!started) {
    log_.error(started.error().message);
    start_at_ = now + std::chrono::seconds(1);
    return;
  }
  child_ = Child::kStarting;
  last_beat_ = now;
  link_watch_ = loop_->watch(process_.link(), [this] { take_messages(); });
  log_.info("cache started", {{"process", std::to_string(process_.id())}});
  update_relay();
}

void Supervisor::take_messages() {
  char message = 0;
  while (process_.link() >= 0) {
    const ssize_t got = ::recv(process_.link(), &message, 1, MSG_DONTWAIT);
    if (got < 0) return;
    if (got == 0) {  // it is about to end: SIGCHLD comes
      link_watch_.reset();
      if (child_ == Child::kStarting || child_ == Child::kAccepting) take_message(link::kLeaves);
      return;
    }
    take_message(message);
  }
}

void Supervisor::take_message(char message) {
  last_beat_ = clock_.now();
  if (message == link::kReady && child_ == Child::kStarting) {
    was_ready_ = true;
    drops_.attach(process_.link());
    send_drops();
  }
  if (message == link::kDropped) drops_.note_done();
  if (message == link::kLeaves && child_ != Child::kLeaving) {
    child_ = Child::kLeaving;
    leaving_until_ = last_beat_ + options_.drain_s + kAfterDrainMax;
    drops_.detach();
    update_relay();
  }
}

void Supervisor::send_drops() {
  const bool accepting = drops_.pump();
  if (!accepting || child_ != Child::kStarting) return;
  child_ = Child::kAccepting;
  accepting_since_ = clock_.now();
  log_.info("the cache accepts", {{"process", std::to_string(process_.id())}});
  update_relay();
}

void Supervisor::kill_silent_child(SteadyTime now) {
  const bool watched = child_ == Child::kStarting || child_ == Child::kAccepting;
  const bool hangs =
      watched ? now - last_beat_ > options_.silence_max_s : child_ == Child::kLeaving && now > leaving_until_;
  if (!hangs) return;
  log_.error("the cache gives no sign of life; killing it", {{"process", std::to_string(process_.id())}});
  process_.send_signal(SIGKILL);
  child_ = Child::kLeaving;  // until it is reaped, which takes a while where the kernel holds it
  leaving_until_ = SteadyTime::max();
  drops_.detach();
  update_relay();
}

void Supervisor::tick() {
  const SteadyTime now = clock_.now();
  take_messages();  // before its silence is judged: we may have been stopped ourselves
  kill_silent_child(now);
  send_drops();
  if (!stop_until_ && child_ == Child::kDead && now >= start_at_) start_child();
  update_relay();
  if (!stop_until_) return;
  if (now > *stop_until_) loop_->expire_all();  // again and again: what was cut may connect once more
  if (child_ == Child::kDead && gate_.size() == 0) loop_->stop();
}

// A child that serves nobody, or may not end its answers, need not end in an orderly way: its store takes that.
void Supervisor::shut_down(const std::string& reason) {
  if (stop_until_) return;
  log_.info("draining", {{"reason", reason}});
  stop_until_ = clock_.now() + options_.drain_s;
  http_.draining = true;
  const bool serves = child_ == Child::kAccepting || child_ == Child::kLeaving;
  const bool may_drain = options_.drain_s > std::chrono::seconds(0);
  process_.send_signal(serves && may_drain ? SIGTERM : SIGKILL);
  if (process_.runs()) child_ = Child::kLeaving;
  leaving_until_ = *stop_until_ + kAfterDrainMax;
  drops_.detach();
  update_relay();
  sockets_ = {};
  for (net::Stream* stream : http_.resting) stream->set_deadline(clock_.now());
}

// We accept while no child does, and know who may be relayed to.
void Supervisor::update_relay() {
  const bool wanted = child_ != Child::kAccepting && !stop_until_ && source_.not_ready_because().empty();
  if (wanted == !listeners_.empty()) return;
  if (!wanted) {
    for (auto& listener : listeners_) listener->close();
    listeners_.clear();
    return;
  }
  const auto take = [&](const std::vector<ListeningSockets::OfAddress>& sockets, bool tls) {
    for (const auto& of_address : sockets) {
      for (const auto& socket : of_address) {
        auto listener = loop_->listen_on(socket);
        if (!listener) return log_.error(listener.error().message);
        listeners_.push_back(std::move(listener.value()));
        gate_.spawn(accept_loop(listeners_.back(), tls));
      }
    }
  };
  take(sockets_.http, false);
  take(sockets_.https, true);
  take(sockets_.relay, true);
}

net::Task<> Supervisor::accept_loop(std::shared_ptr<net::Listener> listener, bool tls) {
  for (;;) {
    auto stream = co_await listener->accept();
    if (!stream) co_return;
    if (clients_ >= limits::kConnectionsMax) continue;  // closed at once: better than to starve those we have
    gate_.spawn(relay(std::move(stream.value()), tls));
  }
}

net::Task<> Supervisor::relay(std::unique_ptr<net::Stream> stream, bool tls) {
  ++clients_;
  if (tls)
    co_await relay_tls(std::move(stream));
  else
    co_await run_http_relay(http_, std::move(stream));
  --clients_;
}

net::Task<> Supervisor::relay_tls(std::unique_ptr<net::Stream> stream) {
  std::string bytes;
  http_.resting.insert(stream.get());
  const auto read = co_await read_hello(*stream, bytes, clock_.now() + limits::kHeadTimeout);
  http_.resting.erase(stream.get());
  if (!read) co_return stream->close(false);
  const ClientHello& hello = read.value();
  const auto routes = http_.routes.current();
  const auto* upstream = hello.kind == ClientHello::Kind::kDone ? routes->find(hello.server_name) : nullptr;
  if (upstream) {
    std::string host = hello.server_name;
    co_await run_sni_relay(sni_, std::move(stream), *upstream, std::move(host), std::move(bytes));
    co_return;
  }
  const std::string reason = "server name \"" + hello.server_name + "\" is no configured host";
  co_await refuse_tls(sni_, *stream, reason);
}

}  // namespace

Result<int> supervise(const SupervisorOptions& options, config::Settings settings, obs::Log& log) {
  NEZHA_TRY(auto sockets, open_sockets(options.listen, options.loops));
  NEZHA_TRY(const auto resolver, net::make_resolver(settings.resolver_servers));
  const auto metrics = obs::make_metrics();
  RouteStore routes(std::make_shared<const Routes>(std::make_shared<const config::Settings>()));
  NEZHA_TRY(const auto source,
            follow_configuration(options.config_path, std::move(settings), options.configmap, routes, log, *metrics));
  Supervisor supervisor(options, std::move(sockets), routes, *source, *resolver, log);
  return supervisor.run();
}

}  // namespace nezha::cache
