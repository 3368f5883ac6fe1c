// Configuration files of every form that the command takes.
#include "cli/offline_policy.h"

#include <gmock/gmock.h>

namespace nezha::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kPlain = R"(upstreams: [{name: u, hosts: [a.example.org]}]
injection: [{name: default, selector: {matchLabels: {nezha.io/inject: "true"}}, upstreams: [u]}]
delegation: [{namespaces: [team], upstreams: [u]}]
)";

std::string config_map(const std::string& metadata, const std::string& key, const std::string& text) {
  std::string out = "apiVersion: v1\nkind: ConfigMap\nmetadata: {" + metadata + "}\ndata:\n  " + key + ": |\n";
  for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
    end = text.find('\n', begin);
    out += "    " + text.substr(begin, end - begin) + '\n';
  }
  return out;
}

OfflinePolicy read(const std::vector<ConfigText>& files) {
  auto policy = read_offline_policy(files);
  EXPECT_TRUE(policy) << policy.error().message;
  return std::move(policy.value());
}

TEST(OfflinePolicy, PlainFileWithoutAddressGetsAPlaceholderAndAWarning) {
  const auto offline = read({{"c.yaml", kPlain}});
  EXPECT_EQ(offline.policy.settings->injection.size(), 1u);
  EXPECT_THAT(offline.policy.cache_addresses, ElementsAre(IpAddress("192.0.2.1")));
  EXPECT_THAT(offline.warnings, ElementsAre(HasSubstr("webhook.cacheAddress is not set: 192.0.2.1")));
}

TEST(OfflinePolicy, AddressOfTheFileIsTaken) {
  const auto offline = read({{"c.yaml", kPlain + "webhook: {cacheAddress: 10.96.12.34}\n"}});
  EXPECT_THAT(offline.policy.cache_addresses, ElementsAre(IpAddress("10.96.12.34")));
  EXPECT_THAT(offline.warnings, IsEmpty());
}

TEST(OfflinePolicy, ConfigMapsOfTheClusterAndOfANamespace) {
  const std::string own = "injection: [{name: mine, selector: {matchLabels: {a: b}}, upstreams: [u]}]\n";
  const auto offline = read(
      {{"all.yaml", config_map("name: mine, namespace: team, labels: {nezha.io/config: 'true'}", "config.yaml", own) +
                        "---\n" + config_map("name: nezha-config, namespace: nezha-system", "config.yaml", kPlain) +
                        "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n"}});
  EXPECT_EQ(offline.policy.settings->upstreams.size(), 1u);
  ASSERT_EQ(offline.policy.delegated.count(Namespace("team")), 1u);
  EXPECT_EQ(offline.policy.delegated.at(Namespace("team")).at(0).name.get(), "mine");
}

TEST(OfflinePolicy, TheAncestorsConfigMapAndPlainListNeedNoAddress) {
  const std::string list =
      "- name: n\n  app: a\n  label: mnist\n  hostAliases: [{ip: 10.0.0.2, hostnames: [c.example.org]}]\n";
  for (const auto& text : {list, config_map("name: hostaliases-config", "config", list)}) {
    const auto offline = read({{"old.yaml", text}});
    ASSERT_EQ(offline.policy.ancestor.size(), 1u) << text;
    EXPECT_EQ(offline.policy.ancestor[0].label, "mnist");
    EXPECT_THAT(offline.warnings, IsEmpty());
  }
}

TEST(OfflinePolicy, ErrorsNameTheFileAndThePlace) {
  const std::pair<std::string, const char*> cases[] = {
      {"upstreams: [{name: u, hosts: ['*.example.org']}]\n", "c.yaml: upstreams[0].hosts[0]"},
      {"upstreams: [\n", "c.yaml"},
      {"nonsense: 1\n", "nonsense"},
      {"apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n", "c.yaml: no ConfigMap"},
      {config_map("name: nezha-config", "config.yaml", "upstreams: 5\n"), "ConfigMap nezha-config: upstreams"}};
  for (const auto& [text, message] : cases) {
    const auto policy = read_offline_policy({{"c.yaml", text}});
    if (policy)
      ADD_FAILURE() << text << " was read";
    else
      EXPECT_THAT(policy.error().message, HasSubstr(message)) << text;
  }
}

TEST(OfflinePolicy, TheClustersConfigurationCannotBeGivenTwice) {
  const auto policy = read_offline_policy({{"a.yaml", kPlain}, {"b.yaml", kPlain}});
  ASSERT_FALSE(policy);
  EXPECT_THAT(policy.error().message, HasSubstr("b.yaml: the cluster's configuration is given twice"));
}

}  // namespace
}  // namespace nezha::cli
