// admit: the whole life of a review as one pure function. Bytes -> Review -> Decision -> Edits -> Patch -> bytes.
// Nothing here can refuse a pod: what cannot be done is left out, with a warning.
// Threads: any.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/named.h"
#include "nezha/k8s/json_patch.h"
#include "webhook/decide.h"
#include "webhook/policy.h"

namespace nezha::webhook {

// What happens to one pod; the command `nezha` shows the same.
struct Change {
  Decision decision;
  std::vector<k8s::PatchOp> patch;    // empty: untouched
  std::vector<std::string> warnings;  // for the user who creates the pod
  std::string pod;                    // its name, or generateName; empty where unknown
  bool failed = false;                // the pod could not be read or changed, for the reason in warnings
};
// `object` is a pod, or a pod template: an object with spec and, usually, metadata.
Change change_pod(Entry entry, const Namespace& name_space, const nlohmann::json& object, const Policy& policy);

struct Answer {
  int http_status = 200;
  std::string result;  // for metrics: a Verdict, "not-a-pod", "error" or "malformed"
  std::string body;    // the review, or {"message": ...} with status 400 or 500
  // For the log; empty where unknown.
  std::string name_space;
  std::string pod;    // its name, or generateName
  std::string rules;  // joined by commas
  std::string note;   // the first warning, or what is wrong with the review
  // The namespace lacks what pods need to be intercepted, and this one, which is no dry run, could have used it.
  bool untrusted = false;
};
Answer admit(Entry entry, std::string_view body, const Policy& policy);

// {"message": "..."}, the body of every HTTP error.
std::string error_body(std::string_view message);

}  // namespace nezha::webhook
