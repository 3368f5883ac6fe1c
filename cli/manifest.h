// Manifest: the documents of a YAML or JSON file as raw trees, and back to text. What the file does not hold is not
// added; keys keep their order; a string stays a string, whatever it looks like. Comments are lost, as with kubectl.
// YAML scalars mean what they mean to kubectl (YAML 1.1), anchors and merge keys are resolved.
// Threads: any.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"

namespace nezha::cli {

enum class Format { kYaml, kJson };

struct Manifest {
  Format format = Format::kYaml;                  // what the text was
  std::vector<nlohmann::ordered_json> documents;  // empty documents are left out
};

// JSON if its first character is { or [ and it parses as JSON, else YAML. Fails with kFixInput; `source` names the text
// in the message, which has the line.
[[nodiscard]] Result<Manifest> read_manifest(std::string_view text, const std::string& source);

// YAML documents are separated by ---, JSON ones by a line end. Ends with a line end.
std::string write_manifest(const std::vector<nlohmann::ordered_json>& documents, Format format);

}  // namespace nezha::cli
