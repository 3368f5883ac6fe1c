// Whether a pod is another one plus what Nezha may add, and nothing else: "result minus ours = input".
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace nezha::test {

// Nezha may: create metadata and annotations, set the annotation nezha.io/status, append to spec.hostAliases, append
// to hostnames of its items; add the parts of a sidecar (webhook/sidecar.h) and list its volume for the cluster
// autoscaler; null counts as absent where it creates something.
testing::AssertionResult is_extension(const nlohmann::json& before, const nlohmann::json& after);

}  // namespace nezha::test
