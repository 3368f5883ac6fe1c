#include "nezha/k8s/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace nezha::k8s {

size_t nesting_of(std::string_view text) {
  size_t depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

namespace {

// nlohmann's messages begin with a tag in brackets that says nothing to a user.
std::string without_tag(std::string_view what) {
  const auto end = what.find("] ");
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

}  // namespace

Result<Document> parse_json(std::string_view text, size_t nesting_max) {
  if (nesting_of(text) > nesting_max)
    return fail(Remedy::kFixInput, "JSON nested deeper than " + std::to_string(nesting_max) + " levels");
  try {
    return std::make_shared<const nlohmann::json>(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& e) {
    return fail(Remedy::kFixInput, "not JSON: " + without_tag(e.what()));
  }
}

}  // namespace nezha::k8s
