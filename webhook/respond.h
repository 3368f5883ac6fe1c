// respond: Edits -> JSON Patch, proved on the object before it is sent.
// Pure. Threads: any.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/k8s/json_patch.h"
#include "nezha/k8s/pod.h"
#include "webhook/mutate.h"

namespace nezha::webhook {

// Add-only operations, sorted by path; those of one path keep their order. Absent and null parents are created.
// Lists grow at their end; into spec.initContainers one item is inserted, after all else that names it by index.
std::vector<k8s::PatchOp> to_patch(const k8s::Pod& pod, const std::vector<Edit>& edits);

// Fails with kGiveUp when the patch does not apply to the object, or when what comes out is no readable pod.
// A patch that the API server could not apply would have the pod refused.
[[nodiscard]] Result<> prove(const nlohmann::json& object, const std::vector<k8s::PatchOp>& patch);

// Sentences for the user as admission warnings: "nezha: " before each, within the API server's limits.
std::vector<std::string> to_warnings(const std::vector<std::string>& sentences);

}  // namespace nezha::webhook
