// The entry points: which sections each kind of file may have, in which order they are read.
#include "nezha/config/parse.h"

#include <algorithm>

#include "src/config/sections.h"

namespace nezha::config {
namespace {

std::vector<UpstreamName> names_of(const std::vector<Upstream>& upstreams) {
  std::vector<UpstreamName> names;
  for (const Upstream& upstream : upstreams) names.push_back(upstream.name);
  return names;
}

// The admin's upstreams that `name_space` may use.
std::vector<UpstreamName> delegated_upstreams(const Settings& admin, const Namespace& name_space) {
  std::vector<UpstreamName> allowed;
  for (const Delegation& delegation : admin.delegation) {
    const auto& namespaces = delegation.namespaces;
    const bool applies = std::any_of(namespaces.begin(), namespaces.end(),
                                     [&](const std::string& name) { return name == "*" || name == name_space.get(); });
    if (!applies) continue;
    if (delegation.upstreams == std::vector{UpstreamName("*")}) return names_of(admin.upstreams);
    allowed.insert(allowed.end(), delegation.upstreams.begin(), delegation.upstreams.end());
  }
  return allowed;
}

}  // namespace

Result<Settings> parse_settings(std::string_view yaml, std::string_view source) {
  NEZHA_TRY(const auto document, parse_document(yaml, source));
  const View top(document, source);
  if (top.is_null()) return top.error("is empty; write at least upstreams: []");
  if (top.is_map() && top.find("apiVersion") && top.find("kind")) {
    return top.error(
        "is a Kubernetes object; give the text that stands in its data under config.yaml, or try the object "
        "with nezha explain --config");
  }
  NEZHA_TRY(top.expect_map({"upstreams", "injection", "delegation", "cache", "webhook", "listen", "resolver", "tls"}));
  Settings settings;
  NEZHA_TRY(settings.upstreams, read_upstreams(top));
  const auto names = names_of(settings.upstreams);
  if (const auto injection = top.find("injection")) {
    NEZHA_TRY(settings.injection,
              read_injection(*injection, names, "is not an upstream of this file; write a name from upstreams"));
  } else {
    settings.injection.push_back(default_rule(names));
  }
  NEZHA_TRY(settings.delegation, read_delegation(top, names));
  NEZHA_TRY(settings.cache, read_cache(top));
  NEZHA_TRY(settings.webhook, read_webhook(top));
  NEZHA_TRY(settings.listen, read_listen(top));
  NEZHA_TRY(settings.resolver_servers, read_resolver(top));
  NEZHA_TRY(settings.tls, read_tls(top));
  return settings;
}

Result<std::vector<AncestorRule>> parse_ancestor(std::string_view yaml, std::string_view source) {
  NEZHA_TRY(const auto document, parse_document(yaml, source));
  const View top(document, source);
  if (top.is_null()) return top.error("is empty; write at least []");
  return read_ancestor(top);
}

Result<std::vector<InjectionRule>> parse_delegated(std::string_view yaml, std::string_view source,
                                                   const Namespace& name_space, const Settings& admin) {
  NEZHA_TRY(const auto document, parse_document(yaml, source));
  const View top(document, source);
  if (top.is_null()) return top.error("is empty; write at least injection: []");
  NEZHA_TRY(const auto sections, top.members());
  for (const View& section : sections) {
    if (section.key() == "injection") continue;
    return section.error(
        "is not allowed in a namespace's own configuration; keep injection only and ask the cluster's "
        "admin for the rest");
  }
  NEZHA_TRY(const auto injection, top.require("injection", "[]"));
  return read_injection(injection, delegated_upstreams(admin, name_space),
                        "is not delegated to namespace " + quoted(name_space.get()) +
                            "; ask the cluster's admin to name it under delegation");
}

}  // namespace nezha::config
