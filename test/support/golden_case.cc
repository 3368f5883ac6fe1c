#include "test/support/golden_case.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/manifest.h"
#include "cli/offline_policy.h"
#include "nezha/config/parse.h"
#include "test/support/golden.h"

namespace nezha::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json read_one(const fs::path& path) {
  const auto manifest = cli::read_manifest(read_text(path), path.string());
  EXPECT_TRUE(manifest) << manifest.error().message;
  EXPECT_EQ(manifest.value().documents.size(), 1u) << path;
  return manifest.value().documents.at(0);
}

webhook::Entry entry_of(const std::string& name) {
  if (name == "namespace") return webhook::Entry::kNamespace;
  if (name == "selector") return webhook::Entry::kSelector;
  if (name == "ancestor") return webhook::Entry::kAncestor;
  EXPECT_EQ(name, "pod");
  return webhook::Entry::kPod;
}

webhook::Policy policy_of(const fs::path& config) {
  auto offline = cli::read_offline_policy({{config.filename().string(), read_text(config)}});
  EXPECT_TRUE(offline) << offline.error().message;
  return std::move(offline.value().policy);
}

void add_delegated(const Json& delegated, webhook::Policy& policy) {
  for (const auto& [name, rules] : delegated.items()) {
    const auto parsed =
        config::parse_delegated(Json{{"injection", rules}}.dump(), name, Namespace(name), *policy.settings);
    EXPECT_TRUE(parsed) << parsed.error().message;
    policy.delegated[Namespace(name)] = parsed.value();
  }
}

}  // namespace

std::vector<fs::path> golden_cases() {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(fs::path(NEZHA_SOURCE_DIR) / "test/golden/inject"))
    if (entry.is_directory()) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  return cases;
}

GoldenCase load_golden_case(const fs::path& folder) {
  GoldenCase out;
  out.pod = read_one(fs::exists(folder / "pod.json") ? folder / "pod.json" : folder / "pod.yaml");
  const Json options = fs::exists(folder / "case.yaml") ? read_one(folder / "case.yaml") : Json::object();
  fs::path config = fs::exists(folder / "config.yaml") ? folder / "config.yaml" : folder.parent_path() / "config.yaml";
  if (options.contains("config")) config = folder / options["config"].get<std::string>();
  out.policy = policy_of(config);
  out.entry = entry_of(options.value("entry", "pod"));
  out.name_space = Namespace(options.value("namespace", "team"));
  if (options.contains("cacheAddresses")) {
    out.policy.cache_addresses.clear();
    for (const auto& ip : options["cacheAddresses"]) out.policy.cache_addresses.emplace_back(ip.get<std::string>());
  }
  if (options.contains("trusted")) {
    out.policy.trust_everywhere = false;
    for (const auto& host : options["trusted"]) {
      auto& trusted = out.policy.trusted[out.name_space];
      trusted.central.insert(HostName(host.get<std::string>()));
      trusted.sidecar.insert(HostName(host.get<std::string>()));
    }
  }
  if (options.contains("delegated")) add_delegated(options["delegated"], out.policy);
  return out;
}

}  // namespace nezha::test
