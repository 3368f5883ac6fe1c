// simulate: what the API server would do with one pod: which entries of the webhook it would call, in which order, and
// what comes out. The same code as the webhook's answers.
// Pure. Threads: any.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nezha/base/named.h"
#include "webhook/admit.h"

namespace nezha::cli {

// What a manifest does not say about the namespace of its pods.
struct Surroundings {
  Namespace name_space{"default"};  // for objects that name none
  std::map<std::string, std::string> namespace_labels;
  bool labels_hold_everywhere = true;  // false: only in name_space, because the user named it
};

// The same for an object that names its own namespace (empty: it does not).
Surroundings in_namespace(const Surroundings& around, const std::string& own_namespace);

struct Call {
  webhook::Entry entry = webhook::Entry::kPod;
  webhook::Change change;
};

struct Simulation {
  std::vector<Call> calls;          // in order; never empty: a pod that no entry selects shows why in the first
  bool called = false;              // whether any entry selects the pod
  std::vector<k8s::PatchOp> patch;  // of all calls, to be applied in order
};

// A warning of a Change without the name that it begins with for users of kubectl: the command's output says it anyway.
std::string without_prefix(const std::string& warning);

Simulation simulate(const nlohmann::json& pod, const Surroundings& around, const webhook::Policy& policy);

}  // namespace nezha::cli
