// PolicyBuilder: good, bad, good again, deleted; delegated rules under an admin who changes his mind.
#include "webhook/controller/policy_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace nezha::webhook {
namespace {

using ::testing::HasSubstr;

constexpr const char* kGood = R"(
upstreams:
  - {name: data, hosts: [data.example.com], protocol: http}
injection:
  - {name: default, selector: {matchLabels: {nezha.io/inject: "true"}}, upstreams: [data]}
delegation:
  - {namespaces: [team-a], upstreams: [data]}
)";
constexpr const char* kBad = "upstreams: [{name: data, hosts: ['*.example.com'], protocol: http}]";
constexpr const char* kDelegated = R"(
injection:
  - {name: mine, selector: {matchLabels: {app: train}}, upstreams: [data]}
)";
constexpr const char* kAncestor = R"(
- {name: a, app: web, label: web, hostAliases: [{ip: 10.0.0.1, hostnames: [a.example.com]}]}
)";

ConfigMap config_map(const std::string& name_space, const std::string& name, const std::string& version,
                     const char* text, const char* key = "config.yaml") {
  ConfigMap out{{"ConfigMap", Namespace(name_space), name, "uid", version}, {}};
  if (text != nullptr) out.data[key] = text;
  return out;
}

ConfigMap admin(const std::string& version, const char* text) {
  return config_map("nezha-system", "nezha-config", version, text);
}
ConfigMap delegated(const std::string& version, const char* text) {
  return config_map("team-a", "rules", version, text);
}

class PolicyBuilderTest : public ::testing::Test {
 protected:
  PolicyBuilder::Outcome with_admin(const std::string& version, const char* text) {
    builder_.set_admin(admin(version, text));
    return builder_.build();
  }
  PolicyBuilder builder_{std::nullopt};
};

TEST_F(PolicyBuilderTest, EmptyAtFirst) {
  const auto outcome = builder_.build();
  EXPECT_TRUE(outcome.policy->settings->upstreams.empty());
  EXPECT_TRUE(outcome.findings.empty());
  EXPECT_EQ(outcome.invalid, 0u);
}

TEST_F(PolicyBuilderTest, BadKeepsTheLastGoodAndIsToldOncePerVersion) {
  EXPECT_TRUE(with_admin("1", kGood).findings.empty());
  auto outcome = with_admin("2", kBad);
  EXPECT_EQ(outcome.policy->settings->upstreams.size(), 1u);
  EXPECT_EQ(outcome.invalid, 1u);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_FALSE(outcome.findings[0].good);
  EXPECT_EQ(outcome.findings[0].about.resource_version, "2");
  EXPECT_THAT(outcome.findings[0].message, HasSubstr("nezha-config/config.yaml: upstreams[0].hosts[0]"));
  EXPECT_TRUE(with_admin("2", kBad).findings.empty());
  EXPECT_TRUE(builder_.build().findings.empty());
  EXPECT_EQ(with_admin("3", kBad).findings.size(), 1u);
}

TEST_F(PolicyBuilderTest, GoodAgainIsTold) {
  with_admin("1", kGood);
  with_admin("2", kBad);
  const auto outcome = with_admin("3", kGood);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_TRUE(outcome.findings[0].good);
  EXPECT_EQ(outcome.invalid, 0u);
  EXPECT_TRUE(with_admin("4", kGood).findings.empty());
}

TEST_F(PolicyBuilderTest, BadFromTheBeginningIsEmpty) {
  const auto outcome = with_admin("1", kBad);
  EXPECT_TRUE(outcome.policy->settings->upstreams.empty());
  EXPECT_EQ(outcome.findings.size(), 1u);
}

TEST_F(PolicyBuilderTest, MissingKeyIsAnErrorThatNamesIt) {
  with_admin("1", kGood);
  const auto outcome = with_admin("2", nullptr);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_THAT(outcome.findings[0].message, HasSubstr("config.yaml"));
  EXPECT_EQ(outcome.policy->settings->upstreams.size(), 1u);
}

TEST_F(PolicyBuilderTest, DeletedIsEmptyAndForgetsTheLastGood) {
  with_admin("1", kGood);
  builder_.set_admin(std::nullopt);
  EXPECT_TRUE(builder_.build().policy->settings->upstreams.empty());
  EXPECT_TRUE(with_admin("3", kBad).policy->settings->upstreams.empty());
}

TEST_F(PolicyBuilderTest, AncestorFormat) {
  builder_.set_ancestor(config_map("nezha-system", "hostaliases-config", "1", kAncestor, "config"));
  EXPECT_EQ(builder_.build().policy->ancestor.size(), 1u);
  builder_.set_ancestor(config_map("nezha-system", "hostaliases-config", "2", "- {name: 7, nonsense: 1}", "config"));
  const auto outcome = builder_.build();
  EXPECT_EQ(outcome.policy->ancestor.size(), 1u);
  EXPECT_EQ(outcome.findings.size(), 1u);
}

TEST_F(PolicyBuilderTest, DelegatedRulesOfTheirNamespace) {
  with_admin("1", kGood);
  builder_.set_delegated({delegated("5", kDelegated)});
  const auto outcome = builder_.build();
  ASSERT_EQ(outcome.policy->delegated.count(Namespace("team-a")), 1u);
  EXPECT_EQ(outcome.policy->delegated.at(Namespace("team-a"))[0].name, RuleName("mine"));
}

TEST_F(PolicyBuilderTest, DelegatedBadKeepsItsLastGood) {
  with_admin("1", kGood);
  builder_.set_delegated({delegated("5", kDelegated)});
  builder_.build();
  builder_.set_delegated({delegated("6", "injection: 7")});
  const auto outcome = builder_.build();
  EXPECT_EQ(outcome.policy->delegated.at(Namespace("team-a")).size(), 1u);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_EQ(outcome.findings[0].about.name_space, Namespace("team-a"));
}

TEST_F(PolicyBuilderTest, WhatTheAdminTakesBackIsGoneGoodOrNot) {
  constexpr const char* kNoDelegation = "upstreams: [{name: data, hosts: [data.example.com], protocol: http}]";
  for (const char* latest : {kDelegated, "injection: 7"}) {
    PolicyBuilder builder{std::nullopt};
    builder.set_admin(admin("1", kGood));
    builder.set_delegated({delegated("5", kDelegated)});
    builder.build();
    builder.set_delegated({delegated("6", latest)});
    builder.build();
    builder.set_admin(admin("2", kNoDelegation));
    EXPECT_TRUE(builder.build().policy->delegated.empty()) << latest;
    builder.set_admin(admin("3", kGood));
    EXPECT_EQ(builder.build().policy->delegated.size(), latest == kDelegated ? 1u : 0u) << latest;
  }
}

TEST_F(PolicyBuilderTest, UsersAreNotBlamedForTheAdminsError) {
  builder_.set_delegated({delegated("5", kDelegated)});
  const auto outcome = with_admin("1", kBad);
  ASSERT_EQ(outcome.findings.size(), 1u);
  EXPECT_EQ(outcome.findings[0].about.name, "nezha-config");
  EXPECT_EQ(with_admin("2", kGood).policy->delegated.size(), 1u);
}

TEST_F(PolicyBuilderTest, DelegatedConfigMapsComeAndGo) {
  with_admin("1", kGood);
  builder_.set_delegated({delegated("5", kDelegated)});
  EXPECT_EQ(builder_.build().policy->delegated.size(), 1u);
  builder_.set_delegated({});
  EXPECT_TRUE(builder_.build().policy->delegated.empty());
}

TEST_F(PolicyBuilderTest, CacheAddressPinnedConfiguredOrTheServices) {
  const std::vector<IpAddress> service{IpAddress("10.96.0.9"), IpAddress("10.96.0.10"), IpAddress("fd00::9")};
  builder_.set_cache_addresses(service);
  const std::vector<IpAddress> one_each{IpAddress("10.96.0.9"), IpAddress("fd00::9")};
  EXPECT_EQ(builder_.build().policy->cache_addresses, one_each);
  const auto configured = with_admin("1", "webhook: {cacheAddress: 10.0.0.7}");
  EXPECT_EQ(configured.policy->cache_addresses, std::vector<IpAddress>{IpAddress("10.0.0.7")});
  PolicyBuilder pinned{IpAddress("10.0.0.8")};
  pinned.set_admin(admin("1", "webhook: {cacheAddress: 10.0.0.7}"));
  pinned.set_cache_addresses(service);
  EXPECT_EQ(pinned.build().policy->cache_addresses, std::vector<IpAddress>{IpAddress("10.0.0.8")});
}

}  // namespace
}  // namespace nezha::webhook
