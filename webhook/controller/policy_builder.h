// PolicyBuilder: ConfigMaps and the cache's addresses -> Policy and findings about ConfigMaps.
// A ConfigMap that does not parse leaves its last good text in force; a deleted one counts as empty. A delegated text
// is checked against the admin's configuration of now, so what the admin takes back is gone at once, good or not.
// No I/O. A finding is made once per version of a ConfigMap.
// Threads: one at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nezha/base/named.h"
#include "webhook/controller/config_map.h"
#include "webhook/policy.h"

namespace nezha::webhook {

// Something to tell about a ConfigMap: a new error, or that it is good again.
struct Finding {
  ObjectReference about;
  bool good = false;
  std::string message;  // one line
};

class PolicyBuilder {
 public:
  // A pinned address wins over what the configuration says, and that over the cache Service.
  explicit PolicyBuilder(std::optional<IpAddress> pinned_address) : pinned_address_(std::move(pinned_address)) {}

  void set_admin(std::optional<ConfigMap> config_map);             // nezha-config, key config.yaml
  void set_ancestor(std::optional<ConfigMap> config_map);          // hostaliases-config, key config
  void set_delegated(std::vector<ConfigMap> config_maps);          // labelled, of every namespace, key config.yaml
  void set_cache_addresses(std::vector<IpAddress> addresses);      // the Service's, in its order
  void set_intercept_addresses(std::vector<IpAddress> addresses);  // the same of the intercepting Service
  void set_trusted(std::map<Namespace, TrustedHosts> trusted);

  struct Outcome {
    std::shared_ptr<const Policy> policy;
    std::vector<Finding> findings;
    size_t invalid = 0;           // ConfigMaps that are wrong now
    bool admin_unknown = false;   // the admin's is wrong, and none was good before
    std::string extra_roots_pem;  // nezha-config, key extra-roots.pem
  };
  Outcome build();

 private:
  // One ConfigMap's key, its last good text, and what was last said about it.
  struct Source {
    std::optional<ConfigMap> config_map;
    std::optional<std::string> good_text;
    bool invalid = false;
    std::string told_version;
  };
  class Builder;

  const std::optional<IpAddress> pinned_address_;
  Source admin_;
  Source ancestor_;
  std::map<std::pair<Namespace, std::string>, Source> delegated_;
  std::vector<IpAddress> cache_addresses_;
  std::vector<IpAddress> intercept_addresses_;
  std::map<Namespace, TrustedHosts> trusted_;
};

}  // namespace nezha::webhook
