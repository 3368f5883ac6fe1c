#include "webhook/policy_file.h"

#include <memory>

#include "nezha/base/limits.h"
#include "nezha/config/parse.h"

namespace nezha::webhook {

Result<bool> PolicyFile::refresh() {
  const FileVersion version = file_version(path_);
  if (seen_ == version) return false;
  seen_ = version;
  NEZHA_TRY(const std::string text, read_file(path_, limits::kConfigBytesMax));
  NEZHA_TRY(config::Settings settings, config::parse_settings(text, path_));
  auto policy = std::make_shared<Policy>();
  if (pinned_address_)
    policy->cache_addresses = {*pinned_address_};
  else if (settings.webhook.cache_address)
    policy->cache_addresses = {*settings.webhook.cache_address};
  if (settings.webhook.cache_tls_address) policy->intercept_addresses = {*settings.webhook.cache_tls_address};
  policy->trust_everywhere = settings.webhook.trust;
  policy->settings = std::make_shared<const config::Settings>(std::move(settings));
  policies_.publish(std::move(policy));
  return true;
}

}  // namespace nezha::webhook
