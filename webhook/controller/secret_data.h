// The `data` of a Secret as plain text, by key <-> its JSON. Pure.
// Threads: any.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nezha::webhook {

using SecretData = std::map<std::string, std::string>;

// Values that are no Base64 are left out.
SecretData read_secret_data(const nlohmann::json& secret);
// `secret` with its data replaced; everything else stays.
nlohmann::json with_secret_data(nlohmann::json secret, const SecretData& data);

}  // namespace nezha::webhook
