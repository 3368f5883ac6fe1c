#include "webhook/controller/selectors.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "webhook/annotations.h"
#include "webhook/controller/short_hash.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;
using Requirement = config::LabelSelector::Requirement;
using Operator = config::LabelSelector::Operator;

constexpr const char* kNamespaceNameLabel = "kubernetes.io/metadata.name";  // set by the API server itself
constexpr const char* kSelectorPath = "/mutate/selector";

const char* to_string(Operator op) {
  switch (op) {
    case Operator::kIn:
      return "In";
    case Operator::kNotIn:
      return "NotIn";
    case Operator::kExists:
      return "Exists";
    case Operator::kDoesNotExist:
      return "DoesNotExist";
  }
  return "Exists";
}

Json requirement_json(const std::string& key, const char* op, const std::vector<std::string>& values) {
  Json out{{"key", key}, {"operator", op}};
  if (!values.empty()) out["values"] = values;
  return out;
}

Json selector_json(const config::LabelSelector& selector) {
  Json expressions = Json::array();
  for (const Requirement& requirement : selector.match_expressions) {
    expressions.push_back(requirement_json(requirement.key, to_string(requirement.op), requirement.values));
  }
  Json out{{"matchExpressions", std::move(expressions)}};
  if (!selector.match_labels.empty()) out["matchLabels"] = selector.match_labels;
  return out;
}

bool asks_for_inject_label(const config::LabelSelector& selector) {
  const auto label = selector.match_labels.find(kInjectLabel);
  if (label != selector.match_labels.end()) return true;  // "true", or a value that no pod we may change has
  return std::any_of(selector.match_expressions.begin(), selector.match_expressions.end(), [](const Requirement& r) {
    return r.key == kInjectLabel && r.op == Operator::kIn && r.values == std::vector<std::string>{"true"};
  });
}

// Requirements in one order whatever order the configuration has them in.
config::LabelSelector canonical(config::LabelSelector selector) {
  for (Requirement& requirement : selector.match_expressions)
    std::sort(requirement.values.begin(), requirement.values.end());
  const auto order = [](const Requirement& r) { return std::tie(r.key, r.op, r.values); };
  std::sort(selector.match_expressions.begin(), selector.match_expressions.end(),
            [&](const Requirement& a, const Requirement& b) { return order(a) < order(b); });
  return selector;
}

WantedSelector* want(std::map<std::string, WantedSelector>& all, const config::InjectionRule& rule) {
  if (asks_for_inject_label(rule.selector)) return nullptr;
  config::LabelSelector selector = canonical(rule.selector);
  const std::string name = std::string(kSelectorEntryPrefix) + short_hash(selector_json(selector).dump()) + ".nezha.io";
  WantedSelector& wanted = all[name];
  wanted.selector = std::move(selector);
  return &wanted;
}

// Adds an expression unless it is there, so that a second pass changes nothing.
void add_expression(Json& selector, Json expression) {
  Json& expressions = selector["matchExpressions"];
  if (!expressions.is_array()) expressions = Json::array();
  if (std::find(expressions.begin(), expressions.end(), expression) == expressions.end()) {
    expressions.push_back(std::move(expression));
  }
}

std::vector<std::string> texts(const std::set<Namespace>& name_spaces) {
  std::vector<std::string> out;
  for (const Namespace& name_space : name_spaces) out.push_back(name_space.get());
  return out;
}

}  // namespace

std::map<std::string, WantedSelector> wanted_selectors(const Policy& policy) {
  std::map<std::string, WantedSelector> out;
  for (const auto& rule : policy.settings->injection) {
    if (WantedSelector* wanted = want(out, rule)) wanted->everywhere = true;
  }
  for (const auto& [name_space, rules] : policy.delegated) {
    for (const auto& rule : rules) {
      if (WantedSelector* wanted = want(out, rule)) wanted->name_spaces.insert(name_space);
    }
  }
  return out;
}

Json selector_entry(const Json& static_entry, const std::string& name, const WantedSelector& wanted,
                    const std::set<Namespace>& always_excluded) {
  Json entry = static_entry;
  entry["name"] = name;
  Json& client = entry["clientConfig"];
  if (client.contains("service")) client["service"]["path"] = kSelectorPath;
  entry["objectSelector"] = selector_json(wanted.selector);
  add_expression(entry["objectSelector"], requirement_json(kInjectLabel, "NotIn", {"false"}));
  Json& name_spaces = entry["namespaceSelector"];
  if (!name_spaces.is_object()) name_spaces = Json::object();
  add_expression(name_spaces, requirement_json(kNamespaceNameLabel, "NotIn", texts(always_excluded)));
  if (!wanted.everywhere)
    add_expression(name_spaces, requirement_json(kNamespaceNameLabel, "In", texts(wanted.name_spaces)));
  return entry;
}

}  // namespace nezha::webhook
