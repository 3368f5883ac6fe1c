#include "webhook/options.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>

#include "nezha/base/text.h"

#ifndef NEZHA_VERSION
#define NEZHA_VERSION "unknown"
#endif

namespace nezha::webhook {
namespace {

// What CLI11 fills in as text and parse_options() turns into values.
struct RawOptions {
  std::string listen = "0.0.0.0:8443";
  std::string admin = "0.0.0.0:9181";
  std::string cache_address;
  std::string name_space;
  uint32_t drain_s = 10;
  std::string log_level = "info";
  std::string log_format = "text";
};

// "IP:PORT", IPv6 in brackets.
Result<config::ListenAddress> parse_listen(const std::string& flag, const std::string& text) {
  const size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon == std::string::npos ? 0 : colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto port = colon == std::string::npos ? std::nullopt : parse_decimal(text.substr(colon + 1));
  const auto ip = canonical_ip(host);
  if (!ip || !port || *port > 65535) {
    return fail(Remedy::kFixInput, flag + ": \"" + text + "\" is not IP:PORT, e.g. 0.0.0.0:8443 or [::]:8443");
  }
  return config::ListenAddress{*ip, static_cast<uint16_t>(*port)};
}

obs::Level level_of(const std::string& name) {
  if (name == "debug") return obs::Level::kDebug;
  if (name == "warning") return obs::Level::kWarning;
  return name == "error" ? obs::Level::kError : obs::Level::kInfo;
}

void add_server_flags(CLI::App& app, RawOptions& raw) {
  app.add_option("--listen", raw.listen, "Address of the admission server, over TLS")->capture_default_str();
  app.add_option("--admin", raw.admin, "Address of /healthz, /readyz and /metrics, plain HTTP")->capture_default_str();
  app.add_option("--drain-seconds", raw.drain_s, "How long to serve on after SIGTERM")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
  app.add_option("--log-level", raw.log_level, "Least severe messages that are logged")
      ->check(CLI::IsMember({"debug", "info", "warning", "error"}))
      ->capture_default_str();
  app.add_option("--log-format", raw.log_format, "Form of the log")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  app.add_option("--cache-address", raw.cache_address,
                 "IP address that central aliases point at, instead of the cache Service's");
}

void add_cluster_flags(CLI::App& app, Options& options, RawOptions& raw) {
  app.add_option("--namespace", raw.name_space, "Namespace of the release (default: POD_NAMESPACE)");
  app.add_option("--webhook-configuration", options.webhook_configuration, "Name of the MutatingWebhookConfiguration")
      ->capture_default_str();
  app.add_option("--service", options.service, "Service that the API server calls")->capture_default_str();
  app.add_option("--secret", options.secret, "Secret that holds CA and certificate")->capture_default_str();
  app.add_option("--cache-service", options.cache_service, "Service of the cache")->capture_default_str();
  app.add_option("--trust", options.trust,
                 "Make the certificates of hosts with tls: intercept, and what pods of each namespace trust them by; "
                 "without it https:// is relayed")
      ->capture_default_str();
  app.add_option("--cache-tls-service", options.cache_tls_service, "Service of the cache for pods that trust it")
      ->capture_default_str();
  app.add_option("--ca-secret", options.ca_secret, "Secret that holds the CAs of intercepted hosts")
      ->capture_default_str();
  app.add_option("--cache-tls-secret", options.cache_tls_secret, "Secret with the central cache's certificates")
      ->capture_default_str();
  app.add_option("--roots", options.roots, "PEM file of the public roots that pods trust beside the cache")
      ->capture_default_str();
  app.add_option("--delegation", options.delegation,
                 "Read labelled ConfigMaps of every namespace, within what the admin delegates")
      ->capture_default_str();
  app.add_option("--audit", options.audit, "Look for pods that were missed: count them, and write an Event on each")
      ->capture_default_str();
  app.add_option("--api-server", options.api_server, "URL of the Kubernetes API (default: as the pod is told)");
  app.add_option("--token-file", options.token_file, "Bearer token for --api-server");
  app.add_option("--ca-file", options.ca_file, "CA certificates for --api-server");
}

void add_file_flags(CLI::App& app, Options& options) {
  CLI::Option* config = app.add_option("--config", options.config, "Run without Kubernetes, with this configuration");
  app.add_flag("--check", options.check, "Only check the file of --config")->needs(config);
  CLI::Option* certificate = app.add_option("--certificate", options.certificate, "PEM certificate chain to serve");
  CLI::Option* key = app.add_option("--key", options.key, "PEM private key of --certificate");
  certificate->needs(key)->needs(config);
  key->needs(certificate);
}

Result<> settle(Options& options, const RawOptions& raw) {
  NEZHA_TRY(options.listen, parse_listen("--listen", raw.listen));
  NEZHA_TRY(options.admin, parse_listen("--admin", raw.admin));
  options.drain = std::chrono::seconds(raw.drain_s);
  options.log_level = level_of(raw.log_level);
  options.log_format = raw.log_format == "json" ? obs::LogFormat::kJson : obs::LogFormat::kText;
  if (!raw.cache_address.empty()) {
    const auto ip = canonical_ip(raw.cache_address);
    if (!ip) return fail(Remedy::kFixInput, "--cache-address: \"" + raw.cache_address + "\" is no IP address");
    options.cache_address = IpAddress(*ip);
  }
  if (!options.config.empty()) {
    if (options.certificate.empty() && !options.check) {
      return fail(Remedy::kFixInput, "--config runs without Kubernetes and then needs --certificate and --key");
    }
    return ok();
  }
  const char* pod_namespace = std::getenv("POD_NAMESPACE");
  options.name_space = Namespace(!raw.name_space.empty() ? raw.name_space : pod_namespace ? pod_namespace : "");
  if (options.name_space.get().empty()) {
    return fail(Remedy::kFixInput,
                "the release's namespace is not known: set POD_NAMESPACE or --namespace, or run without Kubernetes "
                "with --config");
  }
  return ok();
}

}  // namespace

Result<std::variant<Options, int>> parse_options(int argc, const char* const* argv) {
  Options options;
  RawOptions raw;
  CLI::App app("The admission webhook of Nezha: makes labelled pods read remote data through the cache.",
               "nezha-webhook");
  app.set_version_flag("--version", std::string("nezha-webhook ") + NEZHA_VERSION);
  add_server_flags(app, raw);
  add_cluster_flags(app, options, raw);
  add_file_flags(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& text_only) {
    return std::variant<Options, int>(app.exit(text_only, std::cout, std::cerr));
  } catch (const CLI::ParseError& error) {
    return fail(Remedy::kFixInput, std::string(error.what()) + "; --help lists the flags");
  }
  NEZHA_TRY(settle(options, raw));
  return std::variant<Options, int>(std::move(options));
}

}  // namespace nezha::webhook
