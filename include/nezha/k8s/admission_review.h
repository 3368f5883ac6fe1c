// AdmissionReview of admission.k8s.io/v1: bytes -> AdmissionRequest, AdmissionAnswer -> bytes.
// Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/named.h"
#include "nezha/base/result.h"
#include "nezha/k8s/json.h"
#include "nezha/k8s/json_patch.h"

namespace nezha::k8s {

struct AdmissionRequest {
  std::string uid;
  std::string operation;     // CREATE, UPDATE, DELETE, CONNECT
  std::string group;         // of the resource; empty for pods
  std::string resource;      // plural: "pods"
  std::string sub_resource;  // empty, or "ephemeralcontainers", "binding", ...
  Namespace name_space;      // of the request: the object's own may still be empty
  bool dry_run = false;
  Document object;  // the raw object, JSON null when the request carries none
};

// Fails with kFixInput: not JSON, nested too deep, another version or kind, no request or uid, a member of another
// type. The message says which and what would be right.
[[nodiscard]] Result<AdmissionRequest> parse_review(std::string_view body, size_t nesting_max);

// The answer to a review; it always admits.
struct AdmissionAnswer {
  std::string uid;
  std::vector<PatchOp> patch;         // empty: patch and patchType are left out
  std::vector<std::string> warnings;  // shown to the user by kubectl
};
std::string write_review(const AdmissionAnswer& answer);

}  // namespace nezha::k8s
