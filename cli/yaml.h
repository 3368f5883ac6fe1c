// YAML text <-> JSON trees; yaml-cpp stays behind this header.
// Threads: any.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"

namespace nezha::cli {

// All documents of a stream, empty ones left out. Fails with kFixInput and "line N: ..." on broken YAML, a repeated
// key, a key that is no scalar, .inf and .nan, and trees too deep or too large (anchors can multiply).
[[nodiscard]] Result<std::vector<nlohmann::ordered_json>> read_yaml(std::string_view text);

// One document in block style, without a separator.
std::string write_yaml(const nlohmann::ordered_json& document);

}  // namespace nezha::cli
