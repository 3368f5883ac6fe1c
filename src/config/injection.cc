// `injection:` -> InjectionRule values, `delegation:` -> Delegation values.
// Cross-checks: rule names unique, every upstream known.
#include <algorithm>
#include <map>

#include "nezha/base/limits.h"
#include "src/config/names.h"
#include "src/config/sections.h"

namespace nezha::config {
namespace {

constexpr size_t kRulesMax = 1000;
constexpr size_t kSelectorPartsMax = 100;
constexpr std::string_view kSelectorExample = "{matchLabels: {nezha.io/inject: \"true\"}}";

Result<std::map<std::string, std::string>> read_match_labels(const View& view) {
  NEZHA_TRY(const auto members, view.members());
  std::map<std::string, std::string> labels;
  for (const View& member : members) {
    if (!is_label_key(member.key())) {
      return member.error(quoted(member.key()) + " is not a label key; write NAME or PREFIX/NAME as on the pod");
    }
    NEZHA_TRY(labels[member.key()], read_label_value(member));
  }
  return labels;
}

Result<LabelSelector::Requirement> read_requirement(const View& view) {
  using Operator = LabelSelector::Operator;
  NEZHA_TRY(view.expect_map({"key", "operator", "values"}));
  NEZHA_TRY(const auto key, view.require("key", "team"));
  NEZHA_TRY(const auto op, view.require("operator", "Exists"));
  LabelSelector::Requirement requirement;
  NEZHA_TRY(requirement.key, read_label_key(key));
  NEZHA_TRY(const auto index, op.one_of({"In", "NotIn", "Exists", "DoesNotExist"}));
  requirement.op = static_cast<Operator>(index);
  const bool wants_values = requirement.op == Operator::kIn || requirement.op == Operator::kNotIn;
  const auto values = view.find("values");
  if (values) {
    NEZHA_TRY(requirement.values, read_list<std::string>(*values, kSelectorPartsMax, read_label_value));
  }
  if (wants_values && requirement.values.empty())
    return view.error("needs values with In and NotIn; add for example values: [a, b]");
  if (!wants_values && !requirement.values.empty())
    return values->error("is not used with Exists and DoesNotExist; remove it");
  return requirement;
}

Result<LabelSelector> read_selector(const View& view) {
  NEZHA_TRY(view.expect_map({"matchLabels", "matchExpressions"}));
  LabelSelector selector;
  if (const auto labels = view.find("matchLabels")) {
    NEZHA_TRY(selector.match_labels, read_match_labels(*labels));
  }
  if (const auto expressions = view.find("matchExpressions")) {
    NEZHA_TRY(selector.match_expressions,
              read_list<LabelSelector::Requirement>(*expressions, kSelectorPartsMax, read_requirement));
  }
  if (selector.match_labels.empty() && selector.match_expressions.empty()) {
    return view.error("is empty and would match every pod; write for example " + std::string(kSelectorExample));
  }
  return selector;
}

Result<UpstreamName> read_known_upstream(const View& view, const std::vector<UpstreamName>& known,
                                         std::string_view advice) {
  NEZHA_TRY(auto text, view.text());
  UpstreamName name(std::move(text));
  if (std::find(known.begin(), known.end(), name) != known.end()) return name;
  return view.error(quoted(name.get()) + " " + std::string(advice));
}

Result<std::vector<UpstreamName>> read_upstream_names(const View& view, const std::vector<UpstreamName>& known,
                                                      std::string_view advice) {
  const auto read_one = [&](const View& item) { return read_known_upstream(item, known, advice); };
  NEZHA_TRY(auto names, read_list<UpstreamName>(view, limits::kUpstreamsMax, read_one));
  if (names.empty()) return view.error("is empty; list at least one upstream");
  for (size_t i = 0; i < names.size(); ++i) {
    if (std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(i), names[i]) ==
        names.begin() + static_cast<ptrdiff_t>(i))
      continue;
    return view.error("lists " + quoted(names[i].get()) + " twice; keep one of them");
  }
  return names;
}

Result<InjectionRule> read_rule(const View& view, const std::vector<UpstreamName>& known, std::string_view advice) {
  NEZHA_TRY(view.expect_map({"name", "selector", "upstreams", "mode"}));
  NEZHA_TRY(const auto name_view, view.require("name", "default"));
  NEZHA_TRY(auto name, read_name(name_view));
  NEZHA_TRY(const auto selector_view, view.require("selector", kSelectorExample));
  NEZHA_TRY(const auto upstreams_view, view.require("upstreams", "[public-datasets]"));
  InjectionRule rule;
  rule.name = RuleName(std::move(name));
  NEZHA_TRY(rule.selector, read_selector(selector_view));
  NEZHA_TRY(rule.upstreams, read_upstream_names(upstreams_view, known, advice));
  if (const auto mode = view.find("mode")) {
    NEZHA_TRY(const auto index, mode->one_of({"central", "sidecar"}));
    rule.mode = static_cast<Mode>(index);
  }
  return rule;
}

Result<std::string> read_namespace_or_star(const View& view) {
  NEZHA_TRY(const auto text, view.text());
  if (text == "*") return text;
  return read_namespace(view);
}

Result<Delegation> read_one_delegation(const View& view, const std::vector<UpstreamName>& known) {
  NEZHA_TRY(view.expect_map({"namespaces", "upstreams"}));
  NEZHA_TRY(const auto namespaces_view, view.require("namespaces", "[team-a]"));
  NEZHA_TRY(const auto upstreams_view, view.require("upstreams", "[public-datasets]"));
  Delegation delegation;
  NEZHA_TRY(delegation.namespaces, read_list<std::string>(namespaces_view, kRulesMax, read_namespace_or_star));
  if (delegation.namespaces.empty())
    return namespaces_view.error("is empty; list at least one namespace, or \"*\" for all");
  std::vector<UpstreamName> known_or_star = known;
  known_or_star.emplace_back("*");
  NEZHA_TRY(delegation.upstreams,
            read_upstream_names(upstreams_view, known_or_star,
                                "is not an upstream of this file; write a name from upstreams, or \"*\""));
  const bool has_star = std::find(delegation.upstreams.begin(), delegation.upstreams.end(), UpstreamName("*")) !=
                        delegation.upstreams.end();
  if (has_star && delegation.upstreams.size() > 1) return upstreams_view.error("has \"*\" beside names; write either");
  return delegation;
}

}  // namespace

Result<std::vector<InjectionRule>> read_injection(const View& injection, const std::vector<UpstreamName>& known,
                                                  std::string_view unknown_advice) {
  NEZHA_TRY(const auto views, injection.items(kRulesMax));
  std::vector<InjectionRule> rules;
  std::map<std::string, size_t> names;
  for (size_t i = 0; i < views.size(); ++i) {
    NEZHA_TRY(auto rule, read_rule(views[i], known, unknown_advice));
    const auto [first, is_new] = names.emplace(rule.name.get(), i);
    if (!is_new) {
      return views[i].find("name")->error(quoted(rule.name.get()) + " is already the name of injection[" +
                                          std::to_string(first->second) + "]; give each rule a name of its own");
    }
    rules.push_back(std::move(rule));
  }
  return rules;
}

InjectionRule default_rule(const std::vector<UpstreamName>& upstreams) {
  return InjectionRule{.name = RuleName("default"),
                       .selector = {.match_labels = {{"nezha.io/inject", "true"}}, .match_expressions = {}},
                       .upstreams = upstreams,
                       .mode = Mode::kCentral};
}

Result<std::vector<Delegation>> read_delegation(const View& top, const std::vector<UpstreamName>& known) {
  const auto section = top.find("delegation");
  if (!section) return std::vector<Delegation>();
  return read_list<Delegation>(*section, kRulesMax, [&](const View& item) { return read_one_delegation(item, known); });
}

}  // namespace nezha::config
