// mutate: what must change in the pod so that it becomes as the Decision says. Pod + Decision -> Edits.
// Pure and idempotent: over a pod that has the edits already, the list is empty. Edits only add; nothing of the
// user's is replaced or removed. One value grows: JAVA_TOOL_OPTIONS, by options behind the user's.
// Threads: any.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "nezha/k8s/pod.h"
#include "webhook/decide.h"
#include "webhook/trust.h"

namespace nezha::webhook {

// Names added to an item of spec.hostAliases that has the wanted address already.
struct AppendHosts {
  size_t item = 0;
  std::vector<std::string> hosts;
};
// A new item of spec.hostAliases.
struct AddAlias {
  std::string ip;
  std::vector<std::string> hosts;
};
// An annotation of ours, or one that lists names and keeps those it had.
struct SetAnnotation {
  std::string key;
  std::string value;
};
// A new item of spec.initContainers, before the one that stands at `position` now.
struct AddInitContainer {
  size_t position = 0;
  std::string json;
};
// A new item of spec.volumes.
struct AddVolume {
  std::string json;
};
// A new item of spec.securityContext.sysctls.
struct AddSysctl {
  std::string name;
  std::string value;
};
// New items of volumeMounts and env of one container, and a variable that got longer.
struct TrustContainer {
  TrustAddition addition;
};
using Edit = std::variant<AppendHosts, AddAlias, SetAnnotation, AddInitContainer, AddVolume, AddSysctl, TrustContainer>;

struct Edits {
  std::vector<Edit> list;
  std::vector<std::string> warnings;  // what the edits could not do
};

Edits mutate(const k8s::Pod& pod, const Decision& decision);

}  // namespace nezha::webhook
