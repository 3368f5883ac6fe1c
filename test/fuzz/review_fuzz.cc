// Fuzz target: any bytes as an AdmissionReview, at each entry. Holds when the answer is a review that admits the pod or
// a 400 with a message, and when the patch of a readable pod makes a second run empty.
// The first byte chooses entry and policy; the rest is the body.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"
#include "nezha/k8s/admission_review.h"
#include "webhook/admit.h"

namespace nezha::webhook {
namespace {

Policy make_policy(bool dual_stack) {
  auto settings = std::make_shared<config::Settings>();
  settings->upstreams = {{UpstreamName("u"), {HostName("a.org"), HostName("b.org")}, {}, {}, {}, {}}};
  config::InjectionRule rule;
  rule.name = RuleName("r");
  rule.selector.match_labels = {{"nezha.io/inject", "true"}};
  rule.upstreams = {UpstreamName("u")};
  settings->injection = {rule};
  Policy policy;
  policy.settings = std::move(settings);
  policy.ancestor = {{RuleName("old"), "app", "x", {{IpAddress("10.0.0.2"), {HostName("b.org"), HostName("c.org")}}}}};
  policy.cache_addresses = {IpAddress("10.0.0.1")};
  if (dual_stack) policy.cache_addresses.emplace_back("fd00::1");
  return policy;
}

void check_answer(const Answer& answer) {
  NEZHA_CHECK(answer.http_status == 200 || answer.http_status == 400, answer.body.c_str());
  const auto json = nlohmann::json::parse(answer.body);
  if (answer.http_status == 400) {
    NEZHA_CHECK(!json.at("message").get<std::string>().empty(), "a bad review is told why");
    return;
  }
  const auto& response = json.at("response");
  NEZHA_CHECK(response.at("allowed").get<bool>(), "a pod is never refused");
  NEZHA_CHECK(response.contains("patch") == response.contains("patchType"), "both or none");
}

void check_second_run(Entry entry, std::string_view body, const Policy& policy) {
  const auto request = k8s::parse_review(body, limits::kReviewNestingMax);
  if (!request) return;
  const auto& name_space = request.value().name_space;
  const auto change = change_pod(entry, name_space, *request.value().object, policy);
  if (change.patch.empty()) return;
  const auto patched = k8s::apply_patch(*request.value().object, change.patch);
  NEZHA_CHECK(patched, "the patch was proved");
  NEZHA_CHECK(change_pod(entry, name_space, patched.value(), policy).patch.empty(), "the second run adds nothing");
}

}  // namespace
}  // namespace nezha::webhook

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nezha::webhook;
  if (size == 0) return 0;
  static const Policy kPolicies[] = {make_policy(false), make_policy(true)};
  const auto entry = static_cast<Entry>(data[0] & 3);
  const Policy& policy = kPolicies[data[0] >> 2 & 1];
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  check_answer(admit(entry, body, policy));
  check_second_run(entry, body, policy);
  return 0;
}
