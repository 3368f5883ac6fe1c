#include "cli/inject.h"

#include <nlohmann/json.hpp>

#include "cli/templates.h"

namespace nezha::cli {
namespace {

using Json = nlohmann::ordered_json;

// On the command line every message begins with the program's name already.
std::string without_prefix(const std::string& warning) {
  constexpr std::string_view kPrefix = "nezha: ";
  return warning.starts_with(kPrefix) ? warning.substr(kPrefix.size()) : warning;
}

// Applies to the template what was worked out for the pod, which may carry labels that are not the template's.
void apply(Json& target, const std::vector<k8s::PatchOp>& patch) {
  if (patch.empty()) return;
  if (!target.contains("metadata") || target["metadata"].is_null()) target["metadata"] = Json::object();
  target = target.patch(Json::parse(k8s::write_patch(patch)));
}

}  // namespace

Injected inject(const Manifest& manifest, const Surroundings& around, const webhook::Policy& policy) {
  Injected out{manifest.documents, {}, 0};
  for (auto& document : out.documents) {
    for (const auto& found : find_templates(document)) {
      ++out.templates;
      const auto simulation =
          simulate(effective_pod(document, found), in_namespace(around, found.owner_namespace), policy);
      apply(document[Json::json_pointer(found.pointer)], simulation.patch);
      for (const auto& call : simulation.calls)
        for (const auto& warning : call.change.warnings)
          if (simulation.called || call.change.failed)
            out.warnings.push_back(found.title() + ": " + without_prefix(warning));
    }
  }
  return out;
}

}  // namespace nezha::cli
