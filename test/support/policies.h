// Policies and pods made by hand, for tests that need no configuration file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "webhook/policy.h"

namespace nezha::test {

// An upstream and a rule of the same name; the rule selects nezha.io/inject=true and these labels.
struct RuleSpec {
  std::string name;
  std::vector<std::string> hosts;
  std::map<std::string, std::string> labels;
  config::Mode mode = config::Mode::kCentral;
};
webhook::Policy make_policy(const std::vector<RuleSpec>& rules, const std::vector<std::string>& cache_addresses);

// {"kind":"Pod", metadata.labels nezha.io/inject=true plus `labels`, one container}.
nlohmann::json make_pod(const std::map<std::string, std::string>& labels = {});

// An AdmissionReview that creates the pod.
nlohmann::json make_review(const nlohmann::json& pod, const std::string& name_space = "team");

}  // namespace nezha::test
