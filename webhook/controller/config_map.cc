#include "webhook/controller/config_map.h"

#include <nlohmann/json.hpp>

namespace nezha::webhook {

ConfigMap read_config_map(const k8s::Object& object) {
  ConfigMap out;
  out.reference = {"ConfigMap", object.key.name_space, object.key.name, object.uid, object.resource_version};
  const auto json = nlohmann::json::parse(object.json, nullptr, false);
  if (!json.is_object()) return out;
  const auto data = json.find("data");
  if (data == json.end() || !data->is_object()) return out;
  for (const auto& [key, value] : data->items()) {
    if (value.is_string()) out.data[key] = value.get<std::string>();
  }
  return out;
}

}  // namespace nezha::webhook
