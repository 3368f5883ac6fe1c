#include "webhook/controller/cache_service.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nezha/base/text.h"

namespace nezha::webhook {
namespace {

void add(std::vector<IpAddress>& out, const nlohmann::json& value) {
  if (!value.is_string()) return;
  const auto address = canonical_ip(value.get<std::string>());
  if (!address) return;
  const IpAddress ip(*address);
  if (std::find(out.begin(), out.end(), ip) == out.end()) out.push_back(ip);
}

}  // namespace

std::vector<IpAddress> cluster_ips(std::string_view service_json) {
  std::vector<IpAddress> out;
  const auto json = nlohmann::json::parse(service_json, nullptr, false);
  if (!json.is_object() || !json.contains("spec") || !json["spec"].is_object()) return out;
  const auto& spec = json["spec"];
  if (spec.contains("clusterIPs") && spec["clusterIPs"].is_array()) {
    for (const auto& value : spec["clusterIPs"]) add(out, value);
  }
  if (out.empty() && spec.contains("clusterIP")) add(out, spec["clusterIP"]);
  return out;
}

}  // namespace nezha::webhook
