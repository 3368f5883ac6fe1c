#include "cache/classify/routes.h"

namespace nezha::cache {

Routes::Routes(std::shared_ptr<const config::Settings> settings) : settings_(std::move(settings)) {
  for (const auto& upstream : settings_->upstreams) {
    for (const auto& host : upstream.hosts) by_host_.emplace(host.get(), &upstream);
  }
}

const config::Upstream* Routes::find(std::string_view host) const {
  const auto found = by_host_.find(host);
  return found == by_host_.end() ? nullptr : found->second;
}

}  // namespace nezha::cache
