#include "nezha/k8s/json_patch.h"

#include <nlohmann/json.hpp>

namespace nezha::k8s {

std::string pointer_token(std::string_view key) {
  std::string token;
  token.reserve(key.size());
  for (const char c : key) {
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  }
  return token;
}

std::string write_patch(const std::vector<PatchOp>& ops) {
  std::string out = "[";
  for (const auto& op : ops) {
    if (out.size() > 1) out += ',';
    out += R"({"op":"add","path":)" + nlohmann::json(op.path).dump() + R"(,"value":)" + op.value_json + '}';
  }
  return out + ']';
}

Result<nlohmann::json> apply_patch(const nlohmann::json& object, const std::vector<PatchOp>& ops) {
  try {
    return object.patch(nlohmann::json::parse(write_patch(ops)));
  } catch (const nlohmann::json::exception& e) {
    return fail(Remedy::kGiveUp, e.what());
  }
}

}  // namespace nezha::k8s
