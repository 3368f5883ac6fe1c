#include "cli/inject.h"

#include <nlohmann/json.hpp>

#include "cli/spark.h"
#include "cli/templates.h"

namespace nezha::cli {
namespace {

using Json = nlohmann::ordered_json;

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
    for (const auto& role : find_spark_roles(document)) {
      ++out.templates;
      out.warnings.push_back(role.found.title() +
                             ": left as it is; its pods get aliases from the webhook alone, when " +
                             "they are created; nezha explain shows which");
    }
  }
  return out;
}

}  // namespace nezha::cli
