#include "cli/templates.h"

#include <nlohmann/json.hpp>

#include "nezha/base/text.h"
#include "nezha/k8s/json_patch.h"

namespace nezha::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string text(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const Json& member(const Json& object, const char* key) {
  static const Json kNone = Json::object();
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found != object.end() && found->is_object() ? *found : kNone;
}

bool has_containers(const Json& object) {
  const Json& spec = member(object, "spec");
  const auto containers = spec.find("containers");
  return containers != spec.end() && containers->is_array();
}

class Finder {
 public:
  // `owner` is what is known of the enclosing object; `key` the member under which `value` stands.
  void walk(const Json& value, const std::string& key, Template owner) {
    if (value.is_array()) {
      for (size_t i = 0; i < value.size(); ++i) walk(value[i], key, step(owner, std::to_string(i), true));
      return;
    }
    if (!value.is_object()) return;
    const bool is_object_of_its_own = value.contains("kind") && value.contains("apiVersion");
    if (is_object_of_its_own) own(value, owner);
    const bool is_pod = is_object_of_its_own && text(value, "kind") == "Pod";
    if (has_containers(value) && (is_pod || to_lower(key).ends_with("template")))
      return found(std::move(owner), is_pod);
    for (const auto& [name, part] : value.items()) walk(part, name, step(owner, name, false));
  }

  std::vector<Template> results;

 private:
  static Template step(Template owner, const std::string& token, bool index) {
    owner.pointer += '/' + k8s::pointer_token(token);
    if (index)
      owner.where += '[' + token + ']';
    else
      owner.where += (owner.where.empty() ? "" : ".") + token;
    return owner;
  }

  // A complete object, on top or as an item of a List: paths for people begin here.
  static void own(const Json& object, Template& owner) {
    owner.where.clear();
    owner.owner_kind = text(object, "kind");
    const Json& metadata = member(object, "metadata");
    owner.owner_name = text(metadata, "name");
    if (owner.owner_name.empty()) owner.owner_name = text(metadata, "generateName");
    owner.owner_namespace = text(metadata, "namespace");
    owner.owner_labels.clear();
    for (const auto& [key, value] : member(metadata, "labels").items())
      if (value.is_string()) owner.owner_labels[key] = value.get<std::string>();
    // Kubeflow's notebook controller copies all labels of the Notebook to its pod.
    owner.copied_labels = owner.owner_kind == "Notebook";
  }

  void found(Template owner, bool is_pod) {
    owner.labels_path = (owner.where.empty() || is_pod ? "" : owner.where + '.') + "metadata.labels";
    results.push_back(std::move(owner));
  }
};

}  // namespace

std::string Template::title() const { return owner_kind + '/' + owner_name + (where.empty() ? "" : ' ' + where); }

std::vector<Template> find_templates(const Json& document) {
  Finder finder;
  finder.walk(document, "", Template{});
  return std::move(finder.results);
}

nlohmann::json effective_pod(const Json& document, const Template& found) {
  nlohmann::json pod = document.at(Json::json_pointer(found.pointer));
  if (!found.copied_labels || found.owner_labels.empty()) return pod;
  auto& metadata = pod["metadata"];
  if (metadata.is_null()) metadata = nlohmann::json::object();
  auto& labels = metadata["labels"];
  if (labels.is_null()) labels = nlohmann::json::object();
  for (const auto& [key, value] : found.owner_labels) labels[key] = value;
  return pod;
}

}  // namespace nezha::cli
