// One folder under test/golden/inject/, read into values.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "nezha/base/named.h"
#include "webhook/policy.h"

namespace nezha::test {

struct GoldenCase {
  nlohmann::json pod;
  webhook::Entry entry = webhook::Entry::kPod;
  Namespace name_space{"team"};
  webhook::Policy policy;
};

// Every folder, by name.
std::vector<std::filesystem::path> golden_cases();

// Fails the test when a file of the case cannot be read.
GoldenCase load_golden_case(const std::filesystem::path& folder);

}  // namespace nezha::test
