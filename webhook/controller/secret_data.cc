#include "webhook/controller/secret_data.h"

#include <nlohmann/json.hpp>

#include "nezha/pki/base64.h"

namespace nezha::webhook {

SecretData read_secret_data(const nlohmann::json& secret) {
  SecretData out;
  const auto data = secret.find("data");
  if (data == secret.end() || !data->is_object()) return out;
  for (const auto& [key, value] : data->items()) {
    if (!value.is_string()) continue;
    if (auto text = pki::base64_decode(value.get_ref<const std::string&>())) out[key] = std::move(text).value();
  }
  return out;
}

nlohmann::json with_secret_data(nlohmann::json secret, const SecretData& data) {
  auto& out = secret["data"] = nlohmann::json::object();
  for (const auto& [key, text] : data) out[key] = pki::base64_encode(text);
  return secret;
}

}  // namespace nezha::webhook
