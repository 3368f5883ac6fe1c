// cluster_status: which pods that asked for Nezha got it, as a table; what `kubectl get namespaces,pods -A -o json`
// printed -> text and a verdict. It asks no API itself, and it judges by the labels: pods that a rule selects by
// another label are shown only when they were injected.
// Pure. Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "nezha/base/result.h"

namespace nezha::cli {

struct ClusterStatus {
  std::string text;      // a table with a line for each pod, and a summary
  size_t missed = 0;     // pods that run or wait to, opted in, and were not looked at when they were created
  size_t unaliased = 0;  // were looked at, and read nothing from the cache
};

// Fails with kFixInput when the text is no list of namespaces and pods.
[[nodiscard]] Result<ClusterStatus> cluster_status(std::string_view json);

}  // namespace nezha::cli
