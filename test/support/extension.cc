#include "test/support/extension.h"

#include <algorithm>
#include <set>

#include "webhook/annotations.h"

namespace nezha::test {
namespace {

using Json = nlohmann::json;

// The list of the cluster autoscaler may have grown by the sidecar's volume, at its end.
void strip_evictable_volumes(const Json& before, Json& after) {
  const char* key = webhook::kEvictableVolumesAnnotation;
  if (!after.contains(key)) return;
  const std::string was = before.is_object() ? before.value(key, "") : "";
  if (after[key] != (was.empty() ? "" : was + ",") + "nezha-cache") return;
  if (before.is_object() && before.contains(key))
    after[key] = before[key];
  else
    after.erase(key);
}

// Takes items that are ours out of a list, which may be new.
void strip_items(const Json& before, Json& after, const char* list, const std::set<std::string>& ours) {
  if (!after.contains(list) || !after[list].is_array()) return;
  const Json was = before.value(list, Json());
  const auto is_ours = [&](const Json& item) {
    const bool is_new = !was.is_array() || std::find(was.begin(), was.end(), item) == was.end();
    return is_new && item.is_object() && ours.contains(item.value("name", ""));
  };
  auto& now = after[list];
  const size_t removed = std::erase_if(now.get_ref<Json::array_t&>(), is_ours);
  if (!now.empty() || removed == 0 || was.is_array()) return;
  if (before.contains(list))
    now = nullptr;
  else
    after.erase(list);
}

// Takes what is ours out of `after`, beside `before`; what remains must be equal.
void strip_annotations(const Json& before, Json& after) {
  if (!after.contains("metadata")) return;
  auto& metadata = after["metadata"];
  const Json before_metadata = before.value("metadata", Json());
  const Json annotations =
      before_metadata.is_object() && before_metadata.contains("annotations") ? before_metadata["annotations"] : Json();
  if (metadata.is_object() && metadata.contains("annotations") && metadata["annotations"].is_object()) {
    auto& now = metadata["annotations"];
    const bool had_status = annotations.is_object() && annotations.contains(webhook::kStatusAnnotation);
    if (had_status)
      now[webhook::kStatusAnnotation] = annotations[webhook::kStatusAnnotation];
    else
      now.erase(webhook::kStatusAnnotation);
    strip_evictable_volumes(annotations, now);
    if (now.empty() && annotations.is_null()) {
      if (before_metadata.is_object() && before_metadata.contains("annotations"))
        now = nullptr;
      else
        metadata.erase("annotations");
    }
  }
  if (metadata.is_object() && metadata.empty() && before_metadata.is_null()) {
    if (before.contains("metadata"))
      metadata = nullptr;
    else
      after.erase("metadata");
  }
}

void strip_hostnames(const Json& before, Json& after) {
  const Json was = before.value("hostnames", Json());
  auto& now = after["hostnames"];
  if (was.is_array() && now.size() >= was.size())
    now.erase(now.begin() + static_cast<long>(was.size()), now.end());
  else if (was.is_null() && before.contains("hostnames"))
    now = nullptr;
  else if (was.is_null())
    after.erase("hostnames");
}

void strip_aliases(const Json& before, Json& after) {
  if (!after.contains("hostAliases")) return;
  const Json was = before.contains("hostAliases") ? before["hostAliases"] : Json();
  auto& now = after["hostAliases"];
  if (was.is_null()) {
    if (before.contains("hostAliases"))
      now = nullptr;
    else
      after.erase("hostAliases");
    return;
  }
  if (now.size() < was.size()) return;
  now.erase(now.begin() + static_cast<long>(was.size()), now.end());
  for (size_t i = 0; i < was.size(); ++i)
    if (was[i] != now[i]) strip_hostnames(was[i], now[i]);
}

// The container nezha-cache, its volumes, and the sysctl that opens ports 80 and 443 to it.
void strip_sidecar(const Json& before, Json& after) {
  // A user's container of that name may have got the bundle, and there is no other then.
  const Json was_init = before.value("initContainers", Json());
  const auto is_named_so = [](const Json& item) { return item.is_object() && item.value("name", "") == "nezha-cache"; };
  if (!was_init.is_array() || std::none_of(was_init.begin(), was_init.end(), is_named_so))
    strip_items(before, after, "initContainers", {"nezha-cache"});
  strip_items(before, after, "volumes", {"nezha-cache", "nezha-no-token", "nezha-sidecar-tls", "nezha-trust"});
  if (!after.contains("securityContext") || !after["securityContext"].is_object()) return;
  const Json was = before.value("securityContext", Json());
  auto& now = after["securityContext"];
  strip_items(was.is_object() ? was : Json::object(), now, "sysctls", {"net.ipv4.ip_unprivileged_port_start"});
  if (!now.empty() || was.is_object()) return;
  if (before.contains("securityContext"))
    now = nullptr;
  else
    after.erase("securityContext");
}

// The options behind those of the user.
void strip_java(const Json& before, Json& after) {
  if (!before.is_array() || !after.is_array() || after.size() < before.size()) return;
  for (size_t i = 0; i < before.size(); ++i) {
    if (!before[i].is_object() || before[i] == after[i] || before[i].value("name", "") != "JAVA_TOOL_OPTIONS") continue;
    const std::string was = before[i].value("value", "");
    const std::string ours =
        "-Djavax.net.ssl.trustStore=/etc/nezha-trust/truststore.p12 -Djavax.net.ssl.trustStoreType=PKCS12 "
        "-Djavax.net.ssl.trustStorePassword=changeit";
    if (after[i].value("value", "") == was + (was.empty() ? "" : " ") + ours) after[i] = before[i];
  }
}

// The bundle's mounts and variables in each container.
void strip_trust(const Json& before, Json& after, const char* list) {
  if (!before.contains(list) || !before[list].is_array() || !after[list].is_array()) return;
  for (size_t i = 0; i < before[list].size() && i < after[list].size(); ++i) {
    const Json& was = before[list][i];
    Json& now = after[list][i];
    if (!was.is_object() || !now.is_object()) continue;
    strip_items(was, now, "volumeMounts", {"nezha-trust"});
    strip_items(was, now, "env",
                {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
                 "GIT_SSL_CAINFO", "PIP_CERT", "CARGO_HTTP_CAINFO", "S3_CA_FILE"});
    if (now.contains("env")) strip_java(was.value("env", Json()), now["env"]);
    strip_items(was, now, "env", {"JAVA_TOOL_OPTIONS"});
  }
}

}  // namespace

testing::AssertionResult is_extension(const Json& before, const Json& after) {
  Json stripped = after;
  strip_annotations(before, stripped);
  if (stripped.contains("spec") && before.contains("spec")) {
    strip_aliases(before["spec"], stripped["spec"]);
    strip_sidecar(before["spec"], stripped["spec"]);
    for (const char* list : {"initContainers", "containers"}) strip_trust(before["spec"], stripped["spec"], list);
  }
  if (stripped == before) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "differs beyond what Nezha adds:\n" << Json::diff(before, stripped).dump(2);
}

}  // namespace nezha::test
