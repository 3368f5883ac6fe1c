#include "test/support/policies.h"

namespace nezha::test {

webhook::Policy make_policy(const std::vector<RuleSpec>& rules, const std::vector<std::string>& cache_addresses) {
  auto settings = std::make_shared<config::Settings>();
  for (const auto& spec : rules) {
    config::Upstream upstream;
    upstream.name = UpstreamName(spec.name);
    for (const auto& host : spec.hosts) upstream.hosts.emplace_back(host);
    settings->upstreams.push_back(std::move(upstream));
    config::InjectionRule rule;
    rule.name = RuleName(spec.name);
    rule.selector.match_labels = spec.labels;
    rule.selector.match_labels["nezha.io/inject"] = "true";
    rule.upstreams = {UpstreamName(spec.name)};
    rule.mode = spec.mode;
    settings->injection.push_back(std::move(rule));
  }
  webhook::Policy policy;
  policy.settings = std::move(settings);
  for (const auto& address : cache_addresses) policy.cache_addresses.emplace_back(address);
  return policy;
}

nlohmann::json make_pod(const std::map<std::string, std::string>& labels) {
  nlohmann::json all = labels;
  if (all.is_null()) all = nlohmann::json::object();
  all["nezha.io/inject"] = "true";
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"name", "train"}, {"labels", all}}},
          {"spec", {{"containers", nlohmann::json::array({{{"name", "main"}, {"image", "example.org/train:1"}}})}}}};
}

nlohmann::json make_review(const nlohmann::json& pod, const std::string& name_space) {
  return {{"apiVersion", "admission.k8s.io/v1"},
          {"kind", "AdmissionReview"},
          {"request",
           {{"uid", "705ab4f5-6393-11e8-b7cc-42010a800002"},
            {"kind", {{"group", ""}, {"version", "v1"}, {"kind", "Pod"}}},
            {"resource", {{"group", ""}, {"version", "v1"}, {"resource", "pods"}}},
            {"namespace", name_space},
            {"operation", "CREATE"},
            {"dryRun", false},
            {"object", pod}}}};
}

}  // namespace nezha::test
