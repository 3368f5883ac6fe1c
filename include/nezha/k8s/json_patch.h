// JSON Patch (RFC 6902), the part an add-only injector needs. Values are JSON text written by a JSON writer.
// Threads: any.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"

namespace nezha::k8s {

// One {"op":"add"}. On an existing member of an object it replaces the value; "/-" appends to a list.
struct PatchOp {
  std::string path;        // a JSON Pointer whose tokens are already escaped
  std::string value_json;  // one JSON value
  friend bool operator==(const PatchOp&, const PatchOp&) = default;
};

// A key as a token of a JSON Pointer: "~" becomes "~0", then "/" becomes "~1".
std::string pointer_token(std::string_view key);

// The patch document, a JSON list. REQUIRES: each value_json is JSON.
std::string write_patch(const std::vector<PatchOp>& ops);

// The object with the patch applied. Fails with kGiveUp when an operation does not fit the object.
[[nodiscard]] Result<nlohmann::json> apply_patch(const nlohmann::json& object, const std::vector<PatchOp>& ops);

}  // namespace nezha::k8s
