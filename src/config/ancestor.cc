// The ancestor's format: a list of {name, app, label, hostAliases: [{ip, hostnames}]}. Its scalars may be unquoted
// numbers, as its own reader took them.
#include <map>

#include "nezha/base/limits.h"
#include "src/config/names.h"
#include "src/config/sections.h"

namespace nezha::config {
namespace {

constexpr size_t kRulesMax = 1000;
constexpr size_t kAliasesMax = 1000;

Result<AncestorRule::Alias> read_alias(const View& view) {
  NEZHA_TRY(view.expect_map({"ip", "hostnames"}));
  NEZHA_TRY(const auto ip, view.require("ip", "10.96.12.34"));
  NEZHA_TRY(const auto hosts, view.require("hostnames", "[www.cs.toronto.edu]"));
  AncestorRule::Alias alias;
  NEZHA_TRY(alias.ip, ip.ip());
  NEZHA_TRY(alias.hosts, read_list<HostName>(hosts, limits::kHostsPerUpstreamMax, read_host));
  if (alias.hosts.empty()) return hosts.error("is empty; list at least one host");
  return alias;
}

Result<AncestorRule> read_rule(const View& view) {
  NEZHA_TRY(view.expect_map({"name", "app", "label", "hostAliases"}));
  NEZHA_TRY(const auto name, view.require("name", "cifar"));
  NEZHA_TRY(const auto label, view.require("label", "cifar"));
  NEZHA_TRY(const auto aliases, view.require("hostAliases", "[{ip: 10.96.12.34, hostnames: [www.cs.toronto.edu]}]"));
  AncestorRule rule;
  NEZHA_TRY(auto name_text, name.scalar());
  rule.name = RuleName(std::move(name_text));
  if (const auto app = view.find("app")) {
    NEZHA_TRY(rule.app, app->scalar());
  }
  NEZHA_TRY(rule.label, label.scalar());
  if (!is_label_value(rule.label)) {
    return label.error(quoted(rule.label) + " is not a label value; write the value of the pod's label app");
  }
  NEZHA_TRY(rule.aliases, read_list<AncestorRule::Alias>(aliases, kAliasesMax, read_alias));
  return rule;
}

}  // namespace

Result<std::vector<AncestorRule>> read_ancestor(const View& top) {
  NEZHA_TRY(const auto views, top.items(kRulesMax));
  std::vector<AncestorRule> rules;
  std::map<std::string, size_t> names;
  for (size_t i = 0; i < views.size(); ++i) {
    NEZHA_TRY(auto rule, read_rule(views[i]));
    const auto [first, is_new] = names.emplace(rule.name.get(), i);
    if (!is_new) {
      return views[i].find("name")->error(quoted(rule.name.get()) + " is already the name of [" +
                                          std::to_string(first->second) + "]; give each rule a name of its own");
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace nezha::config
