// Fuzz target: any bytes as each kind of configuration text. Holds when every failure is one line for a person and
// every value keeps the promises of parse.h that others build on.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "nezha/config/parse.h"

namespace nezha::config {
namespace {

constexpr std::string_view kSource = "fuzz.yaml";

void check_error(const Error& error) {
  NEZHA_CHECK(error.remedy == Remedy::kFixInput, "a bad configuration is the writer's to fix");
  NEZHA_CHECK(error.message.starts_with("fuzz.yaml: "), error.message.c_str());
  NEZHA_CHECK(error.message.find(" (line ") != std::string::npos, error.message.c_str());
  NEZHA_CHECK(error.message.size() < 8192, "a message is for reading");
  for (const char c : error.message) NEZHA_CHECK(c != '\n' && c != '\0', "a message is one line");
}

void check_rules(const std::vector<InjectionRule>& rules, const Settings& settings) {
  std::set<RuleName> names;
  for (const InjectionRule& rule : rules) {
    NEZHA_CHECK(names.insert(rule.name).second, "rule names are unique");
    NEZHA_CHECK(!rule.selector.match_labels.empty() || !rule.selector.match_expressions.empty(),
                "no rule for every pod");
    for (const UpstreamName& name : rule.upstreams)
      NEZHA_CHECK(settings.find_upstream(name), "rules name known upstreams");
  }
}

void check_settings(const Settings& settings) {
  std::set<HostName> hosts;
  for (const Upstream& upstream : settings.upstreams) {
    NEZHA_CHECK(!upstream.hosts.empty() && upstream.hosts.size() <= limits::kHostsPerUpstreamMax, "one host at least");
    for (const HostName& host : upstream.hosts) {
      NEZHA_CHECK(is_dns1123_subdomain(host.get()) && !canonical_ip(host.get()), "hosts fit hostAliases");
      NEZHA_CHECK(hosts.insert(host).second, "a host belongs to one upstream");
      NEZHA_CHECK(settings.find_host(host) == &upstream, "a host is found");
    }
  }
  check_rules(settings.injection, settings);
}

Settings admin() {
  auto settings = parse_settings(
      "{upstreams: [{name: a, hosts: [a.example]}], delegation: [{namespaces: [x], upstreams: ['*']}]}", "admin");
  NEZHA_CHECK(settings.has_value(), "the fuzz target's own text");
  return std::move(settings).value();
}

}  // namespace
}  // namespace nezha::config

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nezha::config;
  static const Settings kAdmin = admin();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto settings = parse_settings(text, kSource)) {
    check_settings(settings.value());
  } else {
    check_error(settings.error());
  }
  if (const auto rules = parse_delegated(text, kSource, nezha::Namespace("x"), kAdmin)) {
    check_rules(rules.value(), kAdmin);
  } else {
    check_error(rules.error());
  }
  if (const auto rules = parse_ancestor(text, kSource); !rules) check_error(rules.error());
  return 0;
}
