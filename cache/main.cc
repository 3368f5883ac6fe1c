// nezha-cache: composes the data plane bottom-up and runs it until SIGTERM. No logic of its own.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <iostream>
#include <thread>

#include "cache/accept/server.h"
#include "cache/admin/admin.h"
#include "cache/config_source.h"
#include "cache/credentials/key_ring.h"
#include "cache/memory_budget.h"
#include "cache/prefetch/prefetch.h"
#include "cache/purge/purge.h"
#include "cache/supervise/link.h"
#include "cache/supervise/supervisor.h"
#include "nezha/base/limits.h"

namespace {

using namespace nezha;

constexpr size_t kFetchesQueued = 10'000;
constexpr size_t kApprovalsMax = 262'144;

struct Options {
  std::string config_path;
  std::string config_variable;
  uint16_t probed_port = 0;
  std::string configmap;
  bool check = false;
  std::string log_level = "info";
  std::string log_format = "text";
  size_t threads = std::max(1u, std::thread::hardware_concurrency());
  int drain_seconds = static_cast<int>(limits::kDrainTimeout.count());
  bool supervise = false;
  int silence_seconds = 5;
  cache::Inheritance inherited;

  const std::string& source() const { return config_path.empty() ? config_variable : config_path; }
};

void declare(CLI::App& app, Options& options) {
  app.name("nezha-cache");
  app.add_option("--config", options.config_path, "configuration file (YAML)");
  app.add_option("--config-env", options.config_variable,
                 "in place of --config: the environment variable that holds the configuration (YAML)");
  app.add_option("--probe", options.probed_port,
                 "exit with 0 when the nezha-cache with this admin port of 127.0.0.1 is ready, else with 1")
      ->check(CLI::Range(1, 65535));
  app.add_option(
      "--configmap", options.configmap,
      "NAMESPACE/NAME of the ConfigMap whose config.yaml lists the upstreams; followed through the Kubernetes API");
  app.add_flag("--check", options.check, "check the configuration file, and the files that it names, and exit");
  app.add_option("--log-level", options.log_level, "least severe messages that are logged")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_option("--log-format", options.log_format, "form of the log")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "event loops; one per core is best")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--drain-seconds", options.drain_seconds, "how long answers under way may go on after SIGTERM")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_flag("--supervise", options.supervise,
               "hold the sockets and run the cache as a child process: while that is away or hangs, relay to the real "
               "servers, and start it again");
  app.add_option("--silence-seconds", options.silence_seconds,
                 "with --supervise: a cache that gives no sign of life for so long is killed and started again")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str();
  // What the supervisor hands on; not for people.
  app.add_option("--inherit-link", options.inherited.link)->group("");
  app.add_option("--inherit-http", options.inherited.http)->delimiter(',')->group("");
  app.add_option("--inherit-https", options.inherited.https)->delimiter(',')->group("");
  app.add_option("--inherit-relay", options.inherited.relay)->delimiter(',')->group("");
  app.set_version_flag("--version", "nezha-cache " NEZHA_VERSION);
}

obs::Level level_of(const std::string& name) {
  if (name == "debug") return obs::Level::kDebug;
  if (name == "warning") return obs::Level::kWarning;
  return name == "error" ? obs::Level::kError : obs::Level::kInfo;
}

// A connection is a descriptor or two: as many as the system lets us have.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

int stop_with(const std::string& message) {
  std::cerr << "nezha-cache: " << message << "\n";
  return 2;
}

uint64_t memory_of(const config::CacheSettings& cache) {
  return cache.memory_bytes ? cache.memory_bytes : cache::memory_limit_bytes() / 2;
}

// The configured tiers, or half of the memory when there is none.
std::vector<config::TierSettings> tiers_of(const config::CacheSettings& cache, uint64_t memory_bytes) {
  if (!cache.tiers.empty()) return cache.tiers;
  return {{config::Medium::kMemory, "", memory_bytes / 2}};
}

config::ListenSettings addresses_of(config::ListenSettings listen) {
  if (listen.http.empty() && listen.https.empty() && listen.relay.empty()) listen.http.push_back({"0.0.0.0", 80});
  return listen;
}

std::vector<uint16_t> ports_of(const cache::Server& server) {
  std::vector<uint16_t> ports;
  for (const auto& address : server.http_addresses()) ports.push_back(address.port);
  for (const auto& address : server.https_addresses()) ports.push_back(address.port);
  return ports;
}

// By which this process reaches itself; port 0: it does not listen.
net::SocketAddress loopback_to(const std::vector<net::SocketAddress>& addresses) {
  if (addresses.empty()) return {};
  net::SocketAddress out = addresses.front();
  if (out.ip == "0.0.0.0") out.ip = "127.0.0.1";
  if (out.ip == "::") out.ip = "::1";
  return out;
}

void report_addresses(const cache::Server& server, const cache::AdminServer* admin, obs::Log& log) {
  for (const auto& address : server.http_addresses()) log.info("serving http", {{"address", address.text()}});
  for (const auto& address : server.https_addresses())
    log.info("serving or relaying tls by server name", {{"address", address.text()}});
  for (const auto& address : server.relay_addresses())
    log.info("relaying tls by server name", {{"address", address.text()}});
  if (admin) log.info("admin port", {{"port", std::to_string(admin->port())}});
}

// REQUIRES: they are blocked.
int wait_for_end() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT}) sigaddset(&signals, signal);
  int received = 0;
  sigwait(&signals, &received);
  return received;
}

// What is asked for only when somebody reads the metrics.
void read_gauges(const cache::Store& store, const cache::Server& server, obs::Metrics& metrics) {
  const auto set = [&](const char* name, const char* help, obs::Labels labels, uint64_t value) {
    metrics.gauge(name, help, std::move(labels)).set(static_cast<double>(value));
  };
  for (const auto& tier : store.tier_states()) {
    const obs::Labels of = {{"tier", tier.name}};
    set("nezha_cache_tier_size_bytes", "Hard limit of the tier", of, tier.size_bytes);
    set("nezha_cache_tier_used_bytes", "Bytes in the tier's segments", of, tier.used_bytes);
    set("nezha_cache_tier_appended_bytes", "Bytes written to the tier for the first time", of, tier.appended_bytes);
    set("nezha_cache_tier_kept_bytes", "Bytes written again when their segment was reclaimed", of, tier.kept_bytes);
    set("nezha_cache_tier_failed", "1 after an error of the medium that made the tier unusable", of, tier.failed);
  }
  const auto report = store.policy_report();
  for (const auto& candidate : report.candidates) {
    metrics
        .gauge("nezha_cache_policy_shadow_hit_ratio", "Hits that each policy would have had, simulated in miniature",
               {{"policy", std::string(candidate.name)}})
        .set(candidate.hit_ratio);
    metrics
        .gauge("nezha_cache_policy_live", "1 for the policy that decides now",
               {{"policy", std::string(candidate.name)}})
        .set(candidate.name == report.live ? 1 : 0);
  }
  metrics.gauge("nezha_cache_double_size_hit_ratio", "Hits that a cache of twice the size would have had, simulated")
      .set(report.hit_ratio_at_double_size);
  set("nezha_cache_objects", "Stored responses", {}, store.generation_count());
  set("nezha_cache_index_bytes", "Memory of the index: entries and heads in use", {}, store.index_bytes());
  set("nezha_cache_cold_loads", "Pieces brought in from a medium before they could be sent", {}, store.cold_loads());
  set("nezha_cache_connections", "Open client connections", {}, server.connections());
}

cache::AdminCallbacks callbacks_for(const cache::Store& store, const cache::Server& server, cache::Purger& purger,
                                    cache::Prefetcher& prefetcher, obs::Metrics& metrics) {
  cache::AdminCallbacks out;
  out.metrics = [&] {
    read_gauges(store, server, metrics);
    return metrics.expose();
  };
  out.purge = [&](std::string_view json) -> Result<std::string> {
    NEZHA_TRY(const size_t count, purger.purge(json));
    return "{\"purged\": " + std::to_string(count) + "}\n";
  };
  out.take_events = [&](std::string_view json) -> Result<std::string> {
    NEZHA_TRY(const auto taken, purger.take_events(json));
    return "{\"purged\": " + std::to_string(taken.purged) +
           ", \"notUnderstood\": " + std::to_string(taken.not_understood) + "}\n";
  };
  out.prefetch = [&](std::string_view json) { return prefetcher.start(json); };
  out.prefetch_report = [&] { return prefetcher.report(); };
  return out;
}

std::unique_ptr<obs::Log> log_for(const Options& options) {
  return obs::make_log(level_of(options.log_level),
                       options.log_format == "json" ? obs::LogFormat::kJson : obs::LogFormat::kText);
}

// The supervisor's, or our own.
Result<cache::ListeningSockets> sockets_for(const Options& options, const config::ListenSettings& listen) {
  if (options.inherited.supervised()) return cache::adopt_sockets(options.inherited, options.threads);
  return cache::open_sockets(listen, options.threads);
}

int supervise(const Options& options, std::vector<std::string> arguments, config::Settings settings,
              const std::optional<cache::ConfigMapName>& configmap) {
  const auto log = log_for(options);
  const cache::SupervisorOptions supervisor{std::move(arguments),
                                            options.config_path,
                                            configmap,
                                            addresses_of(settings.listen),
                                            options.threads,
                                            std::chrono::seconds(options.silence_seconds),
                                            std::chrono::seconds(options.drain_seconds)};
  const auto status = cache::supervise(supervisor, std::move(settings), *log);
  return status ? status.value() : stop_with(status.error().message);
}

int run(const Options& options, config::Settings settings, const std::optional<cache::ConfigMapName>& configmap) {
  auto link = std::make_unique<cache::SupervisorLink>(options.inherited.link);
  const auto log = log_for(options);
  const auto metrics = obs::make_metrics();
  const SystemClock clock;
  const uint64_t memory_bytes = memory_of(settings.cache);

  // Storage, on workers wherever it may wait for a medium. What an earlier process stored is read in here.
  const auto workers = net::make_workers(limits::kWorkers);
  const auto loaders = net::make_workers(limits::kLoaders);
  const cache::StoreLimits store_limits{memory_bytes / 8, memory_bytes / 4, memory_bytes / 4};
  auto store = cache::Store::open(tiers_of(settings.cache, memory_bytes), store_limits,
                                  {*workers, *loaders, clock, *log, *metrics});
  if (!store) return stop_with(store.error().message);

  // Network: DNS, loops.
  auto resolver = net::make_resolver(settings.resolver_servers);
  if (!resolver) return stop_with(resolver.error().message);
  const config::ListenSettings listen = addresses_of(settings.listen);
  auto certificates = cache::load_certificates(settings.tls, clock, *log, *metrics);
  if (!certificates) return stop_with(options.source() + ": " + certificates.error().message);
  cache::FetchQueue fetches(kFetchesQueued);
  cache::Approvals approvals(kApprovalsMax);
  const auto keys = cache::follow_key_ring(settings.cache.credentials_directory, *log, *metrics);
  cache::RouteStore routes(std::make_shared<const cache::Routes>(std::make_shared<const config::Settings>()));
  auto source =
      cache::follow_configuration(options.config_path, std::move(settings), configmap, routes, *log, *metrics);
  if (!source) return stop_with(source.error().message);
  auto sockets = sockets_for(options, listen);
  if (!sockets) return stop_with(sockets.error().message);
  auto server = cache::start_server({routes, *store.value(), *resolver.value(), *workers, clock, *log, *metrics,
                                     *certificates.value(), *keys, approvals, fetches, net::make_tls_client("")},
                                    std::move(sockets.value()), options.threads);
  if (!server) return stop_with(server.error().message);

  const auto prefetcher = cache::start_prefetcher({routes, *keys, fetches, clock, *log, *metrics,
                                                   loopback_to(server.value()->http_addresses()),
                                                   loopback_to(server.value()->https_addresses())});

  // Admin port, last: readiness means all of the above.
  cache::Purger purger(*store.value(), approvals, clock, routes, ports_of(*server.value()), *log, *metrics);
  std::atomic<bool> draining{false};
  std::unique_ptr<cache::AdminServer> admin;
  if (listen.admin) {
    auto callbacks = callbacks_for(*store.value(), *server.value(), purger, *prefetcher, *metrics);
    callbacks.not_ready_because = [&] {
      return draining ? std::string("shutting down") : source.value()->not_ready_because();
    };
    auto started = cache::start_admin_server(*listen.admin, listen.admin_token_path, std::move(callbacks));
    if (!started) return stop_with(started.error().message);
    admin = std::move(started.value());
  }
  link->serve(*server.value(), *store.value(), clock, [&] { return source.value()->not_ready_because().empty(); });
  report_addresses(*server.value(), admin.get(), *log);

  log->info("draining", {{"signal", std::to_string(wait_for_end())}});
  draining = true;
  link.reset();
  prefetcher->stop();  // it is a client, too
  const bool whole = server.value()->drain(clock.now() + std::chrono::seconds(options.drain_seconds));
  admin.reset();
  server.value().reset();
  loaders->join();
  workers->join();  // before the store goes: their last work may be the last to let go of a fill
  log->info("stopped", {{"all_answers_ended", whole ? "yes" : "no"}});
  return 0;
}

// What a start would say about the configuration and the files that it names.
int check(const Options& options, const config::Settings& settings) {
  const SystemClock clock;
  const auto log = obs::make_null_log();
  const auto metrics = obs::make_metrics();
  const auto certificates = cache::load_certificates(settings.tls, clock, *log, *metrics);
  if (!certificates) return stop_with(options.source() + ": " + certificates.error().message);
  std::cout << options.source() << ": ok\n";
  return 0;
}

// The message of a bad command line. An argument that is none comes first: it may be the missing one, mistyped.
std::string message_of(const CLI::App& app, const CLI::ParseError& error) {
  const auto unknown = app.remaining();
  return unknown.empty() ? error.what() : "unknown argument \"" + unknown.front() + "\"";
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Nezha's cache: HTTP from a local tier, filled from the configured upstreams."};
  declare(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& text_only) {  // --help, --version
    return app.exit(text_only);
  } catch (const CLI::ParseError& error) {
    return stop_with(message_of(app, error) + "; --help lists the flags");
  }

  if (options.probed_port != 0) return cache::is_ready(options.probed_port) ? 0 : 1;
  if (options.config_path.empty() && options.config_variable.empty())
    return stop_with("--config is required; --help lists the flags");
  if (!options.config_path.empty() && !options.config_variable.empty())
    return stop_with("--config and --config-env exclude each other; --help lists the flags");

  // Before any thread starts: sigwait in run(), or the supervisor, takes them. A write to a closed socket is an error
  // value.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  raise_descriptor_limit();

  auto settings = options.config_path.empty() ? cache::load_config_variable(options.config_variable)
                                              : cache::load_config_file(options.config_path);
  if (!settings) return stop_with(settings.error().message);
  std::optional<cache::ConfigMapName> configmap;
  if (!options.configmap.empty() && !(configmap = cache::parse_configmap_name(options.configmap))) {
    return stop_with("--configmap: \"" + options.configmap + "\" is not NAMESPACE/NAME");
  }
  if (options.check) return check(options, settings.value());
  const bool supervises = options.supervise && !options.inherited.supervised();
  if (supervises) return supervise(options, {argv, argv + argc}, std::move(settings.value()), configmap);
  return run(options, std::move(settings.value()), configmap);
}
