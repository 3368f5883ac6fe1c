// OfflinePolicy: the policy that configuration files give, without a cluster.
// A file may be our plain format, the ancestor's plain list, or manifests: ConfigMaps that hold config.yaml (labelled
// nezha.io/config: "true": a namespace's own rules) or the ancestor's data.config. Other objects are passed over.
// Threads: one.
#pragma once

#include <string>
#include <vector>

#include "nezha/base/result.h"
#include "webhook/policy.h"

namespace nezha::cli {

struct ConfigText {
  std::string source;  // the file's name, for messages
  std::string text;
};

struct OfflinePolicy {
  webhook::Policy policy;
  std::vector<std::string> warnings;  // for standard error
};

// Fails with kFixInput and one line that names the file and the place in it.
[[nodiscard]] Result<OfflinePolicy> read_offline_policy(const std::vector<ConfigText>& files);

}  // namespace nezha::cli
