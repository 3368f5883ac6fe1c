// nezha-webhook: composes the admission server and what keeps its configuration and certificate right.
// Exit status: 0 after SIGTERM, SIGINT, --help, --check of a good file; 2 for a bad command line, configuration or
// environment, with one line on standard error.
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <iostream>
#include <memory>
#include <thread>

#include "nezha/base/clock.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"
#include "webhook/admin.h"
#include "webhook/certs.h"
#include "webhook/controller/controller.h"
#include "webhook/controller/readiness.h"
#include "webhook/options.h"
#include "webhook/policy_file.h"
#include "webhook/poller.h"
#include "webhook/serve.h"

namespace nezha::webhook {
namespace {

constexpr int kBadStart = 2;
constexpr std::chrono::milliseconds kFilePollInterval{1000};
constexpr const char* kServingCondition = "serving";

int bad_start(const Error& error) {
  std::cerr << "nezha-webhook: " << error.message << "\n";
  return kBadStart;
}

// Signals are taken by one thread only; every other inherits the mask.
sigset_t block_signals() {
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  sigaddset(&stop_signals, SIGTERM);
  sigaddset(&stop_signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &stop_signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return stop_signals;
}

// Everything that both ways of running share, bottom-up.
struct Base {
  explicit Base(const Options& options) : log(obs::make_log(options.log_level, options.log_format)) {}

  SystemClock clock;
  std::unique_ptr<obs::Log> log;
  std::unique_ptr<obs::Metrics> metrics = obs::make_metrics();
  PolicyStore policies;
  Readiness readiness;
};

// Serves until a stop signal, then drains: not ready at once, served on for the drain time.
Result<> serve(const Options& options, Base& base, const CertificateSource& certificates, const sigset_t& signals,
               std::function<void(const Namespace&)> on_untrusted) {
  AdminServer admin(base.readiness, *base.metrics);
  ServeSettings settings;
  settings.address = options.listen.host;
  settings.port = options.listen.port;
  settings.drain_grace = options.drain;
  settings.on_untrusted = std::move(on_untrusted);
  AdmissionServer server(settings, base.policies, certificates, base.clock, *base.metrics, *base.log);
  NEZHA_TRY(server.bind());
  NEZHA_TRY(const uint16_t admin_port, admin.start(options.admin.host, options.admin.port));
  std::atomic<bool> stopping{false};
  std::thread serving([&server, &stopping] {
    server.run();
    // Ended by itself: a process that answers no review must not go on looking alive.
    if (!stopping) ::kill(::getpid(), SIGTERM);
  });
  base.readiness.set(kServingCondition, "");
  base.log->info("serving", {{"port", std::to_string(server.port())}, {"admin_port", std::to_string(admin_port)}});
  int signal = 0;
  sigwait(&signals, &signal);
  base.readiness.set(kServingCondition, "the process is shutting down");
  base.log->info("draining", {{"signal", std::to_string(signal)}, {"seconds", std::to_string(options.drain.count())}});
  stopping = true;
  server.stop();
  serving.join();
  return ok();
}

// Says what a refresh did; the last good value stays in force after a failure.
void tell(obs::Log& log, const char* what, const Result<bool>& refreshed) {
  if (!refreshed)
    log.error("cannot load, the last good one stays in force", {{"what", what}, {"why", refreshed.error().message}});
  else if (refreshed.value())
    log.info("loaded", {{"what", what}});
}

Result<> run_with_files(const Options& options, const sigset_t& signals) {
  Base base(options);
  PolicyFile policy(options.config, options.cache_address, base.policies);
  NEZHA_TRY(policy.refresh());
  if (options.check) {
    std::cout << options.config << ": ok\n";
    return ok();
  }
  FileCertificate certificate(options.certificate, options.key);
  NEZHA_TRY(certificate.refresh());
  if (base.policies.current()->cache_addresses.empty()) {
    base.log->warning("no cache address: pods are admitted unchanged; set webhook.cacheAddress or --cache-address");
  }
  const Poller poller(kFilePollInterval, [&] {
    tell(*base.log, "configuration", policy.refresh());
    tell(*base.log, "certificate", certificate.refresh());
  });
  return serve(options, base, certificate, signals, nullptr);
}

Result<k8s::ApiServer> api_server_of(const Options& options) {
  if (options.api_server.empty()) {
    auto server = k8s::in_cluster_api_server();
    if (server) return server;
    return fail(server.error().remedy, server.error().message +
                                           "; give the address of the Kubernetes API with --api-server, or run without "
                                           "Kubernetes with --config");
  }
  return k8s::ApiServer{options.api_server, options.token_file, options.ca_file};
}

ControllerSettings controller_settings(const Options& options) {
  ControllerSettings settings;
  settings.tls.release = options.name_space;
  settings.tls.registration = options.webhook_configuration;
  settings.tls.service = options.service;
  settings.tls.secret = options.secret;
  settings.cache_service = options.cache_service;
  settings.cache_address = options.cache_address;
  settings.intercept_service = options.cache_tls_service;
  settings.trust.enabled = options.trust;
  settings.trust.release = options.name_space;
  settings.trust.registration = options.webhook_configuration;
  settings.trust.ca_secret = options.ca_secret;
  settings.trust.leaf_secret = options.cache_tls_secret;
  settings.trust.roots_file = options.roots;
  settings.delegation = options.delegation;
  settings.audit.enabled = options.audit;
  settings.audit.registration = options.webhook_configuration;
  return settings;
}

Result<> run_in_cluster(const Options& options, const sigset_t& signals) {
  NEZHA_TRY(const k8s::ApiServer api_server, api_server_of(options));
  Base base(options);
  LiveCertificate certificate;
  Controller controller(controller_settings(options), api_server, base.policies, certificate, base.readiness,
                        base.clock, *base.metrics, *base.log);
  controller.start();
  return serve(options, base, certificate, signals,
               [&controller](const Namespace& name_space) { controller.note_untrusted(name_space); });
}

}  // namespace
}  // namespace nezha::webhook

int main(int argc, char** argv) {
  using namespace nezha::webhook;
  const sigset_t signals = block_signals();
  const auto parsed = parse_options(argc, argv);
  if (!parsed) return bad_start(parsed.error());
  if (const int* status = std::get_if<int>(&parsed.value())) return *status;
  const Options& options = std::get<Options>(parsed.value());
  const auto ended = options.config.empty() ? run_in_cluster(options, signals) : run_with_files(options, signals);
  return ended ? 0 : bad_start(ended.error());
}
