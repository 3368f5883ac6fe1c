#include <algorithm>

#include "webhook/decide.h"

namespace nezha::webhook {
namespace {

using Operator = config::LabelSelector::Operator;

bool holds(const config::LabelSelector::Requirement& requirement, const std::map<std::string, std::string>& labels) {
  const auto label = labels.find(requirement.key);
  const bool exists = label != labels.end();
  const auto listed = [&] {
    return std::find(requirement.values.begin(), requirement.values.end(), label->second) != requirement.values.end();
  };
  switch (requirement.op) {
    case Operator::kIn:
      return exists && listed();
    case Operator::kNotIn:
      return !exists || !listed();
    case Operator::kExists:
      return exists;
    case Operator::kDoesNotExist:
      return !exists;
  }
  return false;
}

}  // namespace

bool matches(const config::LabelSelector& selector, const std::map<std::string, std::string>& labels) {
  const auto label_holds = [&](const auto& wanted) {
    const auto found = labels.find(wanted.first);
    return found != labels.end() && found->second == wanted.second;
  };
  return std::all_of(selector.match_labels.begin(), selector.match_labels.end(), label_holds) &&
         std::all_of(selector.match_expressions.begin(), selector.match_expressions.end(),
                     [&](const auto& requirement) { return holds(requirement, labels); });
}

}  // namespace nezha::webhook
