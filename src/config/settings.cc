// Look-ups in Settings.
#include "nezha/config/settings.h"

#include <algorithm>

namespace nezha::config {

const Upstream* Settings::find_upstream(const UpstreamName& name) const {
  const auto found =
      std::find_if(upstreams.begin(), upstreams.end(), [&](const Upstream& u) { return u.name == name; });
  return found == upstreams.end() ? nullptr : &*found;
}

const Upstream* Settings::find_host(const HostName& host) const {
  for (const Upstream& upstream : upstreams)
    if (std::find(upstream.hosts.begin(), upstream.hosts.end(), host) != upstream.hosts.end()) return &upstream;
  return nullptr;
}

}  // namespace nezha::config
