// Templates: where a manifest holds pods or pod templates, found by their shape, so that kinds we never heard of work:
// an object whose spec has a list `containers` and that is a Pod, or stands under a key that ends in "template"
// (template, podTemplate, workerTemplate, ...), at any depth: Jobs, CronJobs, TFJobs, Notebooks, items of a List.
// Threads: any.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "nezha/base/named.h"

namespace nezha::cli {

struct Template {
  std::string pointer;          // JSON Pointer of the pod or template within the document; empty: the document itself
  std::string where;            // the same for people: "spec.tfReplicaSpecs.Worker.template", empty for a Pod
  std::string owner_kind;       // the object that holds it: "TFJob"
  std::string owner_name;       // its name or generateName
  std::string owner_namespace;  // empty: not said
  std::map<std::string, std::string> owner_labels;  // the owner's own; copied_labels says whether its pods get them
  bool copied_labels = false;
  std::string labels_path;  // where a label must stand to reach the pod: "spec.template.metadata.labels"

  std::string title() const;  // "TFJob/mnist spec.tfReplicaSpecs.Worker.template"
};

// In the order of the document.
std::vector<Template> find_templates(const nlohmann::ordered_json& document);

// The pod as the API server would see it: the template with the labels that its operator copies to it.
nlohmann::json effective_pod(const nlohmann::ordered_json& document, const Template& found);

}  // namespace nezha::cli
