// Configuration text -> Settings. Pure: no file, no network; yaml-cpp stays behind this header.
//
// Every error is Remedy::kFixInput and its message is one line: where (source name, path of the offending value,
// line), what is wrong, what would be right:
//   nezha-config/config.yaml: upstreams[2].hosts[0] (line 14): "*.example.com" is a wildcard; list each host by name
// Unknown keys are errors. Text over limits::kConfigBytesMax or nested deeper than limits::kConfigNestingMax is an
// error before it is parsed in full; YAML anchors and aliases are refused (they allow exponential expansion).
// Refused as hosts (docs/semantics.md, "Hosts we refuse"): wildcards, upper case, IP addresses, localhost and
// *.localhost, the cluster's own names (kubernetes, kubernetes.default…, *.svc, *.cluster.local), cloud metadata
// names and addresses, services that hand out credentials (STS, IAM, OAuth).
// Threads: any.
#pragma once

#include <string_view>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/config/settings.h"

namespace nezha::config {

// Our format (`config.yaml`). `source` names it in messages. Without `injection:` one rule holds: `default`, pods
// labelled nezha.io/inject=true, all upstreams, central. An address of `listen:` may have port 0: the system chooses.
[[nodiscard]] Result<Settings> parse_settings(std::string_view yaml, std::string_view source);

// The ancestor's format: a YAML list of {name, app, label, hostAliases: [{ip, hostnames: [...]}]}.
[[nodiscard]] Result<std::vector<AncestorRule>> parse_ancestor(std::string_view yaml, std::string_view source);

// A user namespace's ConfigMap: `injection:` only, each rule within what `admin` delegates to that namespace.
// The result's upstreams stay empty: rules refer to the admin's.
[[nodiscard]] Result<std::vector<InjectionRule>> parse_delegated(std::string_view yaml, std::string_view source,
                                                                 const Namespace& name_space, const Settings& admin);

}  // namespace nezha::config
