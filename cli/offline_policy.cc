#include "cli/offline_policy.h"

#include <nlohmann/json.hpp>

#include "cli/manifest.h"
#include "nezha/config/parse.h"
#include "webhook/annotations.h"

namespace nezha::cli {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kOfflineAddress = "192.0.2.1";  // TEST-NET-1: nobody's
constexpr const char* kOfflineTlsAddress = "192.0.2.2";

std::string text(const Json& object, std::initializer_list<const char*> path) {
  const Json* at = &object;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return {};
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : std::string();
}

class Reader {
 public:
  Result<OfflinePolicy> read(const std::vector<ConfigText>& files) {
    for (const auto& file : files) {
      NEZHA_TRY(read_file(file));
    }
    auto settings = std::make_shared<config::Settings>(std::move(settings_));
    for (const auto& own : own_) {
      NEZHA_TRY(auto rules, config::parse_delegated(own.text, own.source, own.name_space, *settings));
      auto& all = out_.policy.delegated[own.name_space];
      all.insert(all.end(), rules.begin(), rules.end());
    }
    set_address(*settings);
    out_.policy.settings = std::move(settings);
    return std::move(out_);
  }

 private:
  struct Own {
    std::string source, text;
    Namespace name_space;
  };

  Result<> read_file(const ConfigText& file) {
    auto manifest = read_manifest(file.text, file.source);
    const bool readable = manifest && !manifest.value().documents.empty();
    const bool objects =
        readable && manifest.value().documents[0].is_object() && manifest.value().documents[0].contains("kind");
    if (objects) return read_objects(manifest.value().documents, file.source);
    if (readable && manifest.value().documents[0].is_array()) return read_ancestor(file.text, file.source);
    return read_settings(file.text, file.source);  // also for broken text: its message names the place
  }

  Result<> read_objects(const std::vector<Json>& documents, const std::string& source) {
    bool any = false;
    for (const auto& document : documents) {
      if (text(document, {"kind"}) != "ConfigMap") continue;
      const auto name = source + ": ConfigMap " + text(document, {"metadata", "name"});
      const auto ours = text(document, {"data", "config.yaml"});
      const auto ancestor = text(document, {"data", "config"});
      any |= !ours.empty() || !ancestor.empty();
      const bool of_namespace = text(document, {"metadata", "labels", webhook::kConfigAnnotation}) == "true";
      if (!ours.empty() && of_namespace) {
        own_.push_back({name, ours, Namespace(text(document, {"metadata", "namespace"}))});
      } else if (!ours.empty()) {
        NEZHA_TRY(read_settings(ours, name));
      }
      if (!ancestor.empty()) {
        NEZHA_TRY(read_ancestor(ancestor, name));
      }
    }
    if (any) return ok();
    return fail(Remedy::kFixInput,
                source + ": no ConfigMap with data \"config.yaml\" (or \"config\", the ancestor's format)");
  }

  Result<> read_settings(std::string_view yaml, const std::string& source) {
    if (has_settings_) return fail(Remedy::kFixInput, source + ": the cluster's configuration is given twice");
    NEZHA_TRY(settings_, config::parse_settings(yaml, source));
    has_settings_ = true;
    return ok();
  }

  Result<> read_ancestor(std::string_view yaml, const std::string& source) {
    NEZHA_TRY(auto rules, config::parse_ancestor(yaml, source));
    out_.policy.ancestor.insert(out_.policy.ancestor.end(), rules.begin(), rules.end());
    return ok();
  }

  void set_address(const config::Settings& settings) {
    out_.policy.trust_everywhere = settings.webhook.trust;
    out_.policy.intercept_addresses = {settings.webhook.cache_tls_address.value_or(IpAddress(kOfflineTlsAddress))};
    if (settings.webhook.cache_address) {
      out_.policy.cache_addresses = {*settings.webhook.cache_address};
      return;
    }
    out_.policy.cache_addresses = {IpAddress(kOfflineAddress)};
    if (settings.injection.empty() && own_.empty()) return;
    out_.warnings.push_back(std::string("webhook.cacheAddress is not set: ") + kOfflineAddress +
                            " stands for the address of the cache; set it to the ClusterIP of the cache's Service "
                            "before you apply what inject prints");
  }

  config::Settings settings_;
  bool has_settings_ = false;
  std::vector<Own> own_;  // read last: they refer to the cluster's configuration
  OfflinePolicy out_;
};

}  // namespace

Result<OfflinePolicy> read_offline_policy(const std::vector<ConfigText>& files) { return Reader().read(files); }

}  // namespace nezha::cli
