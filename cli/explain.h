// explain: for every pod and pod template of a manifest, what the webhook would do and why, in words.
// Pure. Threads: any.
#pragma once

#include <string>

#include "cli/manifest.h"
#include "cli/simulate.h"

namespace nezha::cli {

// Text for a terminal, one paragraph per template. Says so when the manifest holds no pod template.
std::string explain(const Manifest& manifest, const Surroundings& around, const webhook::Policy& policy);

}  // namespace nezha::cli
