// inject: a manifest with every pod and pod template as the webhook would make it.
// Pure. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "cli/manifest.h"
#include "cli/simulate.h"

namespace nezha::cli {

struct Injected {
  std::vector<nlohmann::ordered_json> documents;
  std::vector<std::string> warnings;  // "Job/train spec.template: ...", for standard error
  size_t templates = 0;               // found, pods of a SparkApplication too
};

// A namespace in an object's metadata beats `around`'s.
Injected inject(const Manifest& manifest, const Surroundings& around, const webhook::Policy& policy);

}  // namespace nezha::cli
