// The command `nezha`: arguments -> one command -> exit status (0 done, 1 pods were missed, 2 wrong usage or input).
#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/offline_command.h"

namespace {

using nezha::cli::Format;
using nezha::cli::OfflineOptions;

void add_offline_options(CLI::App& command, OfflineOptions& options) {
  command
      .add_option(
          "-c,--config", options.configs,
          "Nezha's configuration: config.yaml, its ConfigMap, or the ConfigMap hostaliases-config; may be repeated")
      ->envname("NEZHA_CONFIG")
      ->required();
  command.add_option("-f,--filename", options.manifest, "The manifest to read, YAML or JSON; - is standard input")
      ->required();
  command.add_option("-n,--namespace", options.name_space, "Namespace of objects that name none (default: default)");
  command.add_option("--namespace-labels", options.namespace_labels,
                     "Labels of the namespace, k=v,...: nezha.io/inject=true opts in all its pods");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Nezha reads remote data at local speed. This command shows what its webhook does, and did."};
  app.name("nezha");
  app.set_version_flag("--version", "nezha " NEZHA_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  nezha inject --config config.yaml -f job.yaml | kubectl apply -f -\n"
      "  nezha explain --config config.yaml -f tfjob.yaml\n"
      "  nezha status\n"
      "Exit status: 0 done, 1 status found pods that were missed, 2 wrong usage or input.");

  OfflineOptions options;
  auto* inject =
      app.add_subcommand("inject", "Print a manifest with its pods and pod templates as the webhook would make them");
  add_offline_options(*inject, options);
  std::string output;
  inject->add_option("-o,--output", output, "yaml or json (default: as the input)")
      ->check(CLI::IsMember({"yaml", "json"}));
  auto* explain = app.add_subcommand("explain", "Say for each pod template what the webhook would do, and why");
  add_offline_options(*explain, options);
  std::string list;
  auto* status =
      app.add_subcommand("status", "Show, by kubectl, which pods that asked for Nezha got it, and which did not");
  status->add_option(
      "-f,--filename", list,
      "Instead of running kubectl: a file with what `kubectl get namespaces,pods -A -o json` printed; - is "
      "standard input");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(e);  // --help, --version
    // A mistyped command is named, rather than said to be missing.
    const bool unknown = argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty();
    const std::string what = unknown ? "there is no command \"" + std::string(argv[1]) + "\"" : e.what();
    std::cerr << "nezha: " << what << " (nezha --help)\n";
    return 2;
  }
  if (!output.empty()) options.output = output == "json" ? Format::kJson : Format::kYaml;
  if (status->parsed()) return nezha::cli::run_status(list, std::cout, std::cerr);
  if (inject->parsed()) return nezha::cli::run_inject(options, std::cout, std::cerr);
  return nezha::cli::run_explain(options, std::cout, std::cerr);
}
