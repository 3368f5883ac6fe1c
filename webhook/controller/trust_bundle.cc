#include "webhook/controller/trust_bundle.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "nezha/base/text.h"
#include "nezha/pki/base64.h"
#include "nezha/pki/certificates.h"
#include "webhook/controller/short_hash.h"
#include "webhook/trust.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;

constexpr const char* kHosts = "hosts";
constexpr const char* kSidecarHosts = "sidecar-hosts";

std::string lines(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += name + "\n";
  return out;
}

std::string text_at(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json member(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : Json();
}

std::set<HostName> hosts_at(const Json& data, const char* key) {
  std::set<HostName> out;
  const std::string text = text_at(data, key);
  for (const auto line : split(text, '\n'))
    if (!line.empty()) out.insert(HostName(std::string(line)));
  return out;
}

Json first_owner(const Json& object) {
  const Json owners = member(member(object, "metadata"), "ownerReferences");
  return owners.is_array() && !owners.empty() ? owners.front() : Json();
}

}  // namespace

Result<Json> trust_content(const TrustBundle& bundle) {
  NEZHA_TRY(const std::string store, pki::make_trust_store(bundle.certificates_pem, kTrustStorePassword));
  std::string pem;
  for (const auto& certificate : bundle.certificates_pem) pem += certificate;
  return Json{
      {"data", {{kTrustBundleKey, pem}, {kHosts, lines(bundle.hosts)}, {kSidecarHosts, lines(bundle.sidecar_hosts)}}},
      {"binaryData", {{kTrustStoreKey, pki::base64_encode(store)}}}};
}

std::string trust_digest(const Json& config_map) {
  const Json content{member(config_map, "data"), member(config_map, "binaryData")};
  return short_hash(content.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string owner_uid_of(const Json& object) { return text_at(first_owner(object), "uid"); }
std::string owner_name_of(const Json& object) { return text_at(first_owner(object), "name"); }

std::string reduced_trust(const std::string& config_map_json) {
  const Json config_map = Json::parse(config_map_json, nullptr, false);
  const Json data = member(config_map, "data");
  return Json{{"digest", trust_digest(config_map)},
              {"owner", owner_uid_of(config_map)},
              {"owner-name", owner_name_of(config_map)},
              {kHosts, text_at(data, kHosts)},
              {kSidecarHosts, text_at(data, kSidecarHosts)}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

TrustRecord read_trust(const k8s::Object& object) {
  const Json json = Json::parse(object.json, nullptr, false);
  return {.digest = text_at(json, "digest"),
          .owner_uid = text_at(json, "owner"),
          .owner_name = text_at(json, "owner-name"),
          .resource_version = object.resource_version,
          .trusted = {hosts_at(json, kHosts), hosts_at(json, kSidecarHosts)}};
}

}  // namespace nezha::webhook
