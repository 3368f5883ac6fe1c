// Reads of names: hosts that may be redirected to the cache, Kubernetes names, label keys and values.
// The hosts refused here are the list of docs/semantics.md, "Hosts we refuse". Pure. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nezha/base/named.h"
#include "nezha/base/result.h"
#include "src/config/view.h"

namespace nezha::config {

// Why this host must not be redirected to a cache, and what to do; nothing for a host that may.
std::optional<std::string> host_refusal(std::string_view host);

[[nodiscard]] Result<HostName> read_host(const View& view);
// An upstream's or a rule's name: a DNS-1123 label, because it ends up in annotations, metrics and URLs.
[[nodiscard]] Result<std::string> read_name(const View& view);
[[nodiscard]] Result<std::string> read_namespace(const View& view);
// The name of a Secret; also that of a folder, so nothing that leads out of the one around it.
[[nodiscard]] Result<std::string> read_secret_name(const View& view);
[[nodiscard]] Result<std::string> read_label_key(const View& view);
[[nodiscard]] Result<std::string> read_label_value(const View& view);

bool is_label_key(std::string_view text);
bool is_label_value(std::string_view text);

}  // namespace nezha::config
