// Supervisor: the process that holds the listening sockets and outlives the cache, which it starts as its child from
// the same program. While no child accepts, because it starts, died, hangs or leaves, clients are answered from the
// real servers: http_relay.h, and on TLS ports sni_relay.h for every configured host. A child that died is started
// anew, at once and then more and more slowly, for ever; one from which no sign of life comes is killed first.
// Connections that the dead child had accepted are reset by the kernel; those in the queues are not lost.
// Bounds: the relay uses one thread; others follow the configuration and ask DNS.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cache/config_source.h"
#include "nezha/obs/log.h"

namespace nezha::cache {

struct SupervisorOptions {
  std::vector<std::string> arguments;  // of this process, with its name
  std::string config_path;
  std::optional<ConfigMapName> configmap;
  config::ListenSettings listen;
  size_t loops = 1;                       // of the cache
  std::chrono::seconds silence_max_s{5};  // of a child that does not hang
  std::chrono::seconds drain_s{20};
};

// Runs until SIGTERM or SIGINT, which the child is sent, too; then 0. As process 1 it reaps what is orphaned.
// 2: a child that never was ready ended with 2 itself: it has said why.
// Fails with kFixInput: an address cannot be bound, a ConfigMap is named outside a cluster, or the DNS servers are
// none. REQUIRES: SIGTERM, SIGINT and SIGCHLD are blocked.
Result<int> supervise(const SupervisorOptions& options, config::Settings settings, obs::Log& log);

}  // namespace nezha::cache
