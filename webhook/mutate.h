// mutate: what must change in the pod so that it becomes as the Decision says. Pod + Decision -> Edits.
// Pure and idempotent: over a pod that has the edits already, the list is empty. Edits only add; nothing of the
// user's is replaced or removed.
// Threads: any.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "nezha/k8s/pod.h"
#include "webhook/decide.h"

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
// The annotation nezha.io/status.
struct SetStatus {
  std::string value;
};
using Edit = std::variant<AppendHosts, AddAlias, SetStatus>;

struct Edits {
  std::vector<Edit> list;
  std::vector<std::string> warnings;  // what the edits could not do
};

Edits mutate(const k8s::Pod& pod, const Decision& decision);

}  // namespace nezha::webhook
