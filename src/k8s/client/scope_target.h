// The URL of a Scope's list or watch: path and selectors, ending in '?' or '&', ready for more parameters. Pure.
// Threads: any.
#pragma once

#include <string>

#include "nezha/k8s/api_client.h"

namespace nezha::k8s {

std::string scope_target(const Scope& scope);

}  // namespace nezha::k8s
