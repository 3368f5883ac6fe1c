#include "cli/spark.h"

namespace nezha::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

SparkRole role_of(const Json& document, const Json& part, const std::string& name) {
  SparkRole role;
  role.found.owner_kind = text(document, "kind");
  if (const auto metadata = document.find("metadata"); metadata != document.end() && metadata->is_object()) {
    role.found.owner_name = text(*metadata, "name");
    role.found.owner_namespace = text(*metadata, "namespace");
    if (const auto labels = metadata->find("labels"); labels != metadata->end() && labels->is_object())
      for (const auto& [key, value] : labels->items())
        if (value.is_string()) role.found.owner_labels[key] = value.get<std::string>();
  }
  role.found.where = "spec." + name;
  role.found.labels_path = "spec." + name + ".labels";
  role.pod = {{"metadata", nlohmann::json::object()}, {"spec", nlohmann::json::object()}};
  for (const char* key : {"labels", "annotations"})
    if (part.contains(key)) role.pod["metadata"][key] = part[key];
  for (const char* key : {"hostAliases", "hostNetwork"})
    if (part.contains(key)) role.pod["spec"][key] = part[key];
  return role;
}

}  // namespace

std::vector<SparkRole> find_spark_roles(const Json& document) {
  std::vector<SparkRole> roles;
  if (!document.is_object() || text(document, "kind") != "SparkApplication") return roles;
  const auto spec = document.find("spec");
  if (spec == document.end() || !spec->is_object()) return roles;
  for (const char* name : {"driver", "executor"}) {
    const auto part = spec->find(name);
    if (part == spec->end() || !part->is_object() || part->contains("template")) continue;
    roles.push_back(role_of(document, *part, name));
  }
  return roles;
}

}  // namespace nezha::cli
