#include "webhook/admit.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "nezha/base/limits.h"
#include "nezha/k8s/admission_review.h"
#include "nezha/k8s/pod.h"
#include "webhook/mutate.h"
#include "webhook/respond.h"

namespace nezha::webhook {
namespace {

bool creates_pod(const k8s::AdmissionRequest& request) {
  return request.operation == "CREATE" && request.group.empty() && request.resource == "pods" &&
         request.sub_resource.empty();
}

Change failed(std::string why) {
  Change change;
  change.failed = true;
  change.warnings = to_warnings({"the pod was left as it is: " + std::move(why)});
  return change;
}

Change change_readable_pod(Entry entry, const Namespace& name_space, const nlohmann::json& object,
                           const Policy& policy) {
  auto pod = k8s::read_pod(object);
  if (!pod) return failed(pod.error().message);
  Change change;
  change.pod = pod.value().name.empty() ? pod.value().generate_name : pod.value().name;
  change.decision = decide(entry, name_space, pod.value(), policy);
  Edits edits = mutate(pod.value(), change.decision);
  change.patch = to_patch(pod.value(), edits.list);
  if (auto proved = prove(object, change.patch); !proved)
    return failed("the patch does not fit it (" + proved.error().message + ')');
  std::vector<std::string> sentences = std::move(edits.warnings);
  if (change.decision.warn)
    sentences.insert(sentences.end(), change.decision.reasons.begin(), change.decision.reasons.end());
  change.warnings = to_warnings(sentences);
  return change;
}

Answer refused(int http_status, const char* result, const std::string& message) {
  Answer answer;
  answer.http_status = http_status;
  answer.result = result;
  answer.body = error_body(message);
  answer.note = message;
  return answer;
}

Answer admit_or_throw(Entry entry, std::string_view body, const Policy& policy) {
  auto request = k8s::parse_review(body, limits::kReviewNestingMax);
  if (!request) return refused(400, "malformed", request.error().message);
  Answer answer;
  answer.name_space = request.value().name_space.get();
  if (!creates_pod(request.value())) {
    answer.result = "not-a-pod";
    answer.body = k8s::write_review({request.value().uid, {}, {}});
    return answer;
  }
  const Change change = change_pod(entry, request.value().name_space, *request.value().object, policy);
  answer.result = change.failed ? "error" : to_string(change.decision.verdict);
  answer.body = k8s::write_review({request.value().uid, change.patch, change.warnings});
  answer.untrusted = change.decision.untrusted && !request.value().dry_run;
  answer.pod = change.pod;
  for (const auto& rule : change.decision.rules) answer.rules += (answer.rules.empty() ? "" : ",") + rule;
  if (!change.warnings.empty()) answer.note = change.warnings.front();
  return answer;
}

}  // namespace

Change change_pod(Entry entry, const Namespace& name_space, const nlohmann::json& object, const Policy& policy) {
  try {
    return change_readable_pod(entry, name_space, object, policy);
  } catch (const std::exception& e) {
    return failed(std::string("an internal error of the webhook (") + e.what() + ')');
  }
}

Answer admit(Entry entry, std::string_view body, const Policy& policy) {
  try {
    return admit_or_throw(entry, body, policy);
  } catch (const std::exception& e) {
    // Without the uid no review can be answered; the API server then follows failurePolicy: Ignore.
    return refused(500, "error", std::string("internal error: ") + e.what());
  }
}

std::string error_body(std::string_view message) {
  return nlohmann::json{{"message", message}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace nezha::webhook
