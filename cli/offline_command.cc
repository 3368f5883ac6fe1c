#include "cli/offline_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cli/cluster_status.h"
#include "cli/explain.h"
#include "cli/files.h"
#include "cli/inject.h"
#include "cli/offline_policy.h"
#include "nezha/base/text.h"

namespace nezha::cli {
namespace {

constexpr size_t kListBytesMax = size_t{4} << 30;  // a pod is about 10 KiB

struct Input {
  Manifest manifest;
  OfflinePolicy policy;
  Surroundings around;
};

Result<std::map<std::string, std::string>> parse_labels(const std::string& text) {
  std::map<std::string, std::string> labels;
  if (text.empty()) return labels;
  for (const auto item : split(text, ',')) {
    const auto equals = item.find('=');
    if (equals == std::string_view::npos || equals == 0)
      return fail(Remedy::kFixInput, "--namespace-labels: \"" + std::string(item) + "\" is not key=value");
    labels[std::string(item.substr(0, equals))] = item.substr(equals + 1);
  }
  return labels;
}

Result<Input> read_input(const OfflineOptions& options) {
  const auto on_stdin = std::count(options.configs.begin(), options.configs.end(), "-") + (options.manifest == "-");
  if (on_stdin > 1) return fail(Remedy::kFixInput, "only one file can be standard input (-)");
  std::vector<ConfigText> configs;
  for (const auto& path : options.configs) {
    NEZHA_TRY(auto text, read_file(path));
    configs.push_back({display_name(path), std::move(text)});
  }
  Input input;
  NEZHA_TRY(input.policy, read_offline_policy(configs));
  NEZHA_TRY(const auto text, read_file(options.manifest));
  NEZHA_TRY(input.manifest, read_manifest(text, display_name(options.manifest)));
  NEZHA_TRY(input.around.namespace_labels, parse_labels(options.namespace_labels));
  input.around.labels_hold_everywhere = options.name_space.empty();
  if (!options.name_space.empty()) input.around.name_space = Namespace(options.name_space);
  return input;
}

int complain(const Error& error, std::ostream& err) {
  err << "nezha: " << error.message << '\n';
  return 2;
}

void warn(const std::vector<std::string>& warnings, std::ostream& err) {
  for (const auto& warning : warnings) err << "nezha: warning: " << warning << '\n';
}

}  // namespace

int run_inject(const OfflineOptions& options, std::ostream& out, std::ostream& err) {
  const auto input = read_input(options);
  if (!input) return complain(input.error(), err);
  warn(input.value().policy.warnings, err);
  const auto injected = inject(input.value().manifest, input.value().around, input.value().policy.policy);
  warn(injected.warnings, err);
  if (injected.templates == 0) err << "nezha: warning: no pod and no pod template in the input\n";
  out << write_manifest(injected.documents, options.output.value_or(input.value().manifest.format));
  return 0;
}

int run_explain(const OfflineOptions& options, std::ostream& out, std::ostream& err) {
  const auto input = read_input(options);
  if (!input) return complain(input.error(), err);
  warn(input.value().policy.warnings, err);
  out << explain(input.value().manifest, input.value().around, input.value().policy.policy);
  return 0;
}

int run_status(const std::string& list, std::ostream& out, std::ostream& err) {
  if (list.empty()) err << "nezha: asking the API server for namespaces and pods\n";
  const auto text = list.empty() ? read_command("kubectl get namespaces,pods --all-namespaces --output=json")
                                 : read_file(list, kListBytesMax);
  if (!text) return complain(text.error(), err);
  const auto status = cluster_status(text.value());
  if (!status) return complain(status.error(), err);
  out << status.value().text;
  return status.value().missed > 0 ? 1 : 0;
}

}  // namespace nezha::cli
