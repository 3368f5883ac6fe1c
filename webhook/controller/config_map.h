// ConfigMap: what the controller needs of one, read from its JSON. Pure.
// Threads: values.
#pragma once

#include <map>
#include <string>

#include "nezha/base/named.h"
#include "nezha/k8s/watch.h"

namespace nezha::webhook {

// Which version of which object something is said about.
struct ObjectReference {
  std::string kind;
  Namespace name_space;
  std::string name;
  std::string uid;
  std::string resource_version;
};

struct ConfigMap {
  ObjectReference reference;
  std::map<std::string, std::string> data;  // members that are no strings are left out
};

ConfigMap read_config_map(const k8s::Object& object);

}  // namespace nezha::webhook
