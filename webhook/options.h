// Options: the command line of nezha-webhook as a value. CLI11 stays behind it.
// Threads: values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "nezha/base/named.h"
#include "nezha/base/result.h"
#include "nezha/config/settings.h"
#include "nezha/obs/log.h"

namespace nezha::webhook {

struct Options {
  config::ListenAddress listen{"0.0.0.0", 8443};
  config::ListenAddress admin{"0.0.0.0", 9181};
  std::chrono::seconds drain{10};
  obs::Level log_level = obs::Level::kInfo;
  obs::LogFormat log_format = obs::LogFormat::kText;
  std::optional<IpAddress> cache_address;

  // With Kubernetes.
  Namespace name_space;
  std::string webhook_configuration = "nezha";
  std::string service = "nezha-webhook";
  std::string secret = "nezha-webhook-tls";
  std::string cache_service = "nezha-cache";
  std::string cache_tls_service = "nezha-cache-tls";
  bool trust = true;
  std::string ca_secret = "nezha-ca";
  std::string cache_tls_secret = "nezha-cache-tls";
  std::string roots = "/etc/ssl/certs/ca-certificates.crt";
  bool delegation = true;
  bool audit = true;
  std::string api_server;  // empty: as the pod is told
  std::string token_file;
  std::string ca_file;

  // Without Kubernetes: configuration and certificate from files.
  std::string config;
  bool check = false;
  std::string certificate;
  std::string key;
};

// Options, or the exit status when the command line asked only for a text (help, version), which was printed.
// kFixInput: what is wrong with it and what would be right, in one line.
[[nodiscard]] Result<std::variant<Options, int>> parse_options(int argc, const char* const* argv);

}  // namespace nezha::webhook
