#include "cli/manifest.h"

#include <nlohmann/json.hpp>

#include "cli/yaml.h"
#include "nezha/k8s/json.h"

namespace nezha::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr size_t kNestingMax = 200;

}  // namespace

Result<Manifest> read_manifest(std::string_view text, const std::string& source) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && (text[first] == '{' || text[first] == '[') &&
      k8s::nesting_of(text) <= kNestingMax) {
    Json document = Json::parse(text, nullptr, false);
    if (!document.is_discarded()) return Manifest{Format::kJson, {std::move(document)}};
  }
  auto documents = read_yaml(text);
  if (!documents) return fail(Remedy::kFixInput, source + ": " + documents.error().message);
  return Manifest{Format::kYaml, std::move(documents.value())};
}

std::string write_manifest(const std::vector<Json>& documents, Format format) {
  std::string out;
  for (const auto& document : documents) {
    if (format == Format::kJson) {
      out += document.dump(2) + '\n';
      continue;
    }
    if (!out.empty()) out += "---\n";
    out += write_yaml(document);
  }
  return out;
}

}  // namespace nezha::cli
