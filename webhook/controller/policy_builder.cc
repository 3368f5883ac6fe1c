#include "webhook/controller/policy_builder.h"

#include <algorithm>
#include <set>
#include <utility>

#include "nezha/config/parse.h"

namespace nezha::webhook {
namespace {

constexpr const char* kConfigKey = "config.yaml";
constexpr const char* kExtraRootsKey = "extra-roots.pem";
constexpr const char* kAncestorKey = "config";

std::string source_name(const ConfigMap& config_map, const char* key) { return config_map.reference.name + "/" + key; }

bool is_ipv6(const IpAddress& address) { return address.get().find(':') != std::string::npos; }

// At most one address per family, the first of each.
std::vector<IpAddress> one_per_family(const std::vector<IpAddress>& addresses) {
  std::vector<IpAddress> out;
  for (const IpAddress& address : addresses) {
    const auto same_family = [&](const IpAddress& other) { return is_ipv6(other) == is_ipv6(address); };
    if (std::none_of(out.begin(), out.end(), same_family)) out.push_back(address);
  }
  return out;
}

}  // namespace

// One build: collects the findings while it goes through the sources.
class PolicyBuilder::Builder {
 public:
  // Parses the source's text, or its last good one; an empty value when there is neither.
  template <class T, class Parse>
  T read(Source& source, const char* key, const Parse& parse) {
    if (!source.config_map) {
      source = Source{};
      return T{};
    }
    const auto member = source.config_map->data.find(key);
    const std::string name = source_name(*source.config_map, key);
    auto parsed = member == source.config_map->data.end()
                      ? Result<T>(fail(Remedy::kFixInput, name + ": the ConfigMap has no key \"" + key + "\"; add it"))
                      : parse(member->second, name);
    if (parsed) {
      source.good_text = member->second;
      tell(source, true, name + ": is valid again and in force");
      return std::move(parsed).value();
    }
    tell(source, false, parsed.error().message);
    return last_good<T>(source, name, parse);
  }

  std::vector<Finding> findings;
  size_t invalid = 0;

 private:
  template <class T, class Parse>
  static T last_good(Source& source, const std::string& name, const Parse& parse) {
    if (!source.good_text) return T{};
    auto parsed = parse(*source.good_text, name);
    if (parsed) return std::move(parsed).value();
    source.good_text.reset();  // no longer allowed
    return T{};
  }

  void tell(Source& source, bool good, std::string message) {
    const ObjectReference& about = source.config_map->reference;
    const bool news = good ? source.invalid : !source.invalid || source.told_version != about.resource_version;
    source.invalid = !good;
    invalid += good ? 0 : 1;
    if (!news) return;
    source.told_version = about.resource_version;
    findings.push_back({about, good, std::move(message)});
  }
};

void PolicyBuilder::set_admin(std::optional<ConfigMap> config_map) { admin_.config_map = std::move(config_map); }
void PolicyBuilder::set_ancestor(std::optional<ConfigMap> config_map) { ancestor_.config_map = std::move(config_map); }

void PolicyBuilder::set_delegated(std::vector<ConfigMap> config_maps) {
  std::set<std::pair<Namespace, std::string>> present;
  for (ConfigMap& config_map : config_maps) {
    std::pair key(config_map.reference.name_space, config_map.reference.name);
    delegated_[key].config_map = std::move(config_map);
    present.insert(std::move(key));
  }
  std::erase_if(delegated_, [&](const auto& entry) { return present.count(entry.first) == 0; });
}

void PolicyBuilder::set_cache_addresses(std::vector<IpAddress> addresses) { cache_addresses_ = std::move(addresses); }
void PolicyBuilder::set_intercept_addresses(std::vector<IpAddress> addresses) {
  intercept_addresses_ = std::move(addresses);
}
void PolicyBuilder::set_trusted(std::map<Namespace, TrustedHosts> trusted) { trusted_ = std::move(trusted); }

PolicyBuilder::Outcome PolicyBuilder::build() {
  Builder builder;
  auto policy = std::make_shared<Policy>();
  policy->settings = std::make_shared<const config::Settings>(
      builder.read<config::Settings>(admin_, kConfigKey, config::parse_settings));
  policy->ancestor = builder.read<std::vector<config::AncestorRule>>(ancestor_, kAncestorKey, config::parse_ancestor);
  // Without the admin's word nothing can be said about what he delegates.
  const bool admin_unknown = admin_.invalid && !admin_.good_text;
  for (auto& [key, source] : delegated_) {
    if (admin_unknown) break;
    const Namespace& name_space = key.first;
    const auto parse = [&](std::string_view text, std::string_view name) {
      return config::parse_delegated(text, name, name_space, *policy->settings);
    };
    auto rules = builder.read<std::vector<config::InjectionRule>>(source, kConfigKey, parse);
    auto& all = policy->delegated[name_space];
    std::move(rules.begin(), rules.end(), std::back_inserter(all));
  }
  std::erase_if(policy->delegated, [](const auto& entry) { return entry.second.empty(); });
  const auto& configured = policy->settings->webhook.cache_address;
  if (pinned_address_)
    policy->cache_addresses = {*pinned_address_};
  else if (configured)
    policy->cache_addresses = {*configured};
  else
    policy->cache_addresses = one_per_family(cache_addresses_);
  const auto& intercepting = policy->settings->webhook.cache_tls_address;
  policy->intercept_addresses = intercepting ? std::vector{*intercepting} : one_per_family(intercept_addresses_);
  policy->trusted = trusted_;
  Outcome outcome{std::move(policy), std::move(builder.findings), builder.invalid, admin_unknown, {}};
  if (admin_.config_map && admin_.config_map->data.contains(kExtraRootsKey))
    outcome.extra_roots_pem = admin_.config_map->data.at(kExtraRootsKey);
  return outcome;
}

}  // namespace nezha::webhook
