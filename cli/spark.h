// Spark: a SparkApplication has no pod template of its own shape; its operator and its driver make the pods from
// spec.driver and spec.executor. `explain` reads those as pods.
// Threads: any.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/templates.h"

namespace nezha::cli {

struct SparkRole {
  Template found;      // labels_path is spec.driver.labels, spec.executor.labels
  nlohmann::json pod;  // with the role's labels, annotations and hostAliases
};

// Empty for other kinds, and for a role that carries a pod template.
std::vector<SparkRole> find_spark_roles(const nlohmann::ordered_json& document);

}  // namespace nezha::cli
