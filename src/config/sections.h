// Readers of the file's sections: a View of the document's top -> typed values. One function per section.
// Each fails with the message of the first mistake in reading order. Pure. Threads: any.
#pragma once

#include <vector>

#include "nezha/base/result.h"
#include "nezha/config/settings.h"
#include "src/config/view.h"

namespace nezha::config {

[[nodiscard]] Result<std::vector<Upstream>> read_upstreams(const View& top);

// `injection:`. Every upstream named must be one of `known`; `unknown_advice` says what to do about one that is not.
[[nodiscard]] Result<std::vector<InjectionRule>> read_injection(const View& injection,
                                                                const std::vector<UpstreamName>& known,
                                                                std::string_view unknown_advice);
// The rule in force when the file has no `injection:`: pods labelled nezha.io/inject=true, all upstreams, central.
InjectionRule default_rule(const std::vector<UpstreamName>& upstreams);

[[nodiscard]] Result<std::vector<Delegation>> read_delegation(const View& top, const std::vector<UpstreamName>& known);
[[nodiscard]] Result<CacheSettings> read_cache(const View& top);
[[nodiscard]] Result<WebhookSettings> read_webhook(const View& top);
[[nodiscard]] Result<ListenSettings> read_listen(const View& top);
[[nodiscard]] Result<std::vector<ListenAddress>> read_resolver(const View& top);
[[nodiscard]] Result<TlsSettings> read_tls(const View& top);
[[nodiscard]] Result<std::vector<AncestorRule>> read_ancestor(const View& top);

}  // namespace nezha::config
