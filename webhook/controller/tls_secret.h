// The Secret that replicas share <-> TlsState. Pure.
// Keys: ca.crt, ca.key, tls.crt, tls.key; while rotating next-ca.crt, next-ca.key, previous-ca.crt, promoted-at.
// Threads: any.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "nezha/base/result.h"
#include "webhook/controller/tls_state.h"

namespace nezha::webhook {

// nullopt: the Secret is empty, as the chart makes it. kFixInput: it holds something else; says what is wrong.
// An unreadable next or previous CA counts as none: rotation begins again.
[[nodiscard]] Result<std::optional<TlsState>> read_tls_secret(const nlohmann::json& secret, const Rotation& rotation);

// `secret` with its data replaced; everything else (labels, resourceVersion) stays.
nlohmann::json with_tls_state(nlohmann::json secret, const TlsState& state);

}  // namespace nezha::webhook
