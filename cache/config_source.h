// ConfigSource: keeps the Routes in force up to date from a file, and from a ConfigMap where one is named.
// The file gives listen, resolver and cache; `upstreams` come from the ConfigMap when there is one, else from the file.
// A bad change leaves the last good configuration in force and is logged and counted.
// Threads: owner's; works on threads of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/classify/routes.h"
#include "nezha/base/result.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"

namespace nezha::cache {

struct ConfigMapName {
  Namespace name_space;
  std::string name;
};

// "namespace/name"; nothing for anything else.
std::optional<ConfigMapName> parse_configmap_name(std::string_view text);

// Reads and checks a configuration file. Fails with kFixInput; the message is one line.
Result<config::Settings> load_config_file(const std::string& path);

// The same of the text that an environment variable of this process holds.
Result<config::Settings> load_config_variable(const std::string& name);

class ConfigSource {
 public:
  virtual ~ConfigSource() = default;  // stops
  // Empty once every source has been read once.
  virtual std::string not_ready_because() const = 0;
};

// `settings`: what was loaded at start. An empty `path`: they came from no file, and none is followed.
// Fails with kFixInput: a ConfigMap is named outside a cluster.
Result<std::unique_ptr<ConfigSource>> follow_configuration(std::string path, config::Settings settings,
                                                           std::optional<ConfigMapName> configmap, RouteStore& routes,
                                                           obs::Log& log, obs::Metrics& metrics);

}  // namespace nezha::cache
