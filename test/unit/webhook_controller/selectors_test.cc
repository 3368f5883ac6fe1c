// Selector entries: which are wanted, what they are called, and what they hold.
#include "webhook/controller/selectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nezha/config/parse.h"
#include "test/unit/webhook_controller/registration_fixture.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;

const std::set<Namespace> kExcluded{Namespace("kube-system"), Namespace("nezha-system")};

// A policy whose admin rules have these selectors, in YAML's flow form.
Policy policy_of(const std::vector<std::string>& selectors) {
  std::string yaml = "upstreams: [{name: d, hosts: [d.example.com], protocol: http}]\ninjection:\n";
  for (size_t i = 0; i < selectors.size(); ++i) {
    yaml += "  - {name: r" + std::to_string(i) + ", selector: " + selectors[i] + ", upstreams: [d]}\n";
  }
  auto parsed = config::parse_settings(yaml, "test");
  EXPECT_TRUE(parsed) << parsed.error().message;
  Policy policy;
  policy.settings = std::make_shared<const config::Settings>(std::move(parsed).value());
  return policy;
}

config::InjectionRule rule_for_app(const std::string& app) {
  config::InjectionRule rule;
  rule.selector.match_labels["app"] = app;
  return rule;
}

Json static_entry() { return Json::parse(test::kRegistration)["webhooks"][0]; }

TEST(WantedSelectors, WhatTheStaticEntryCoversNeedsNone) {
  EXPECT_TRUE(wanted_selectors(policy_of({R"({matchLabels: {nezha.io/inject: "true"}})"})).empty());
  EXPECT_TRUE(wanted_selectors(policy_of({R"({matchLabels: {nezha.io/inject: "true", team: a}})"})).empty());
  EXPECT_TRUE(
      wanted_selectors(policy_of({R"({matchExpressions: [{key: nezha.io/inject, operator: In, values: ["true"]}]})"}))
          .empty());
}

TEST(WantedSelectors, OneEntryPerDistinctSelectorWithAStableName) {
  const auto wanted =
      wanted_selectors(policy_of({"{matchLabels: {app: a}}", "{matchLabels: {app: b}}", "{matchLabels: {app: a}}"}));
  ASSERT_EQ(wanted.size(), 2u);
  for (const auto& [name, selector] : wanted) {
    EXPECT_THAT(name, ::testing::MatchesRegex("selector-[0-9a-f]+\\.nezha\\.io"));
    EXPECT_TRUE(selector.everywhere);
  }
  EXPECT_EQ(wanted_selectors(policy_of({"{matchLabels: {app: b}}"})).begin()->first,
            wanted_selectors(policy_of({"{matchLabels: {app: b}}"})).begin()->first);
}

TEST(WantedSelectors, OrderOfExpressionsAndValuesDoesNotMatter) {
  const auto one = wanted_selectors(
      policy_of({"{matchExpressions: [{key: a, operator: In, values: [x, y]}, {key: b, operator: Exists}]}"}));
  const auto two = wanted_selectors(
      policy_of({"{matchExpressions: [{key: b, operator: Exists}, {key: a, operator: In, values: [y, x]}]}"}));
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one.begin()->first, two.begin()->first);
}

TEST(WantedSelectors, DelegatedOnesAreBoundToTheirNamespaces) {
  Policy policy = policy_of({R"({matchLabels: {nezha.io/inject: "true"}})"});
  policy.delegated[Namespace("team-a")] = {rule_for_app("train")};
  policy.delegated[Namespace("team-b")] = {rule_for_app("train")};
  const auto wanted = wanted_selectors(policy);
  ASSERT_EQ(wanted.size(), 1u);
  EXPECT_FALSE(wanted.begin()->second.everywhere);
  EXPECT_EQ(wanted.begin()->second.name_spaces, (std::set<Namespace>{Namespace("team-a"), Namespace("team-b")}));
}

TEST(SelectorEntry, CopiesTheStaticEntryAndReplacesWhatMustDiffer) {
  const auto wanted = wanted_selectors(policy_of({"{matchLabels: {app: a}}"}));
  const Json entry = selector_entry(static_entry(), "selector-x.nezha.io", wanted.begin()->second, kExcluded);
  EXPECT_EQ(entry["name"], "selector-x.nezha.io");
  EXPECT_EQ(entry["clientConfig"]["service"]["path"], "/mutate/selector");
  EXPECT_EQ(entry["clientConfig"]["service"]["name"], "nezha-webhook");
  EXPECT_EQ(entry["failurePolicy"], "Ignore");
  EXPECT_EQ(entry["timeoutSeconds"], 5);
  EXPECT_EQ(entry["rules"], static_entry()["rules"]);
  EXPECT_EQ(entry["objectSelector"]["matchLabels"], (Json{{"app", "a"}}));
  EXPECT_THAT(entry["objectSelector"]["matchExpressions"].dump(),
              ::testing::HasSubstr(R"({"key":"nezha.io/inject","operator":"NotIn","values":["false"]})"));
}

TEST(SelectorEntry, ExclusionsOfTheChartAndOurOwnAlwaysHold) {
  const auto wanted = wanted_selectors(policy_of({"{matchLabels: {app: a}}"}));
  const Json entry = selector_entry(static_entry(), "x", wanted.begin()->second, kExcluded);
  const Json& expressions = entry["namespaceSelector"]["matchExpressions"];
  ASSERT_EQ(expressions.size(), 2u);
  EXPECT_EQ(expressions[0], static_entry()["namespaceSelector"]["matchExpressions"][0]);
  EXPECT_EQ(expressions[1]["values"], (Json{"kube-system", "nezha-system"}));
  Json bare = static_entry();
  bare.erase("namespaceSelector");
  const Json from_bare = selector_entry(bare, "x", wanted.begin()->second, kExcluded);
  EXPECT_EQ(from_bare["namespaceSelector"]["matchExpressions"][0]["operator"], "NotIn");
}

TEST(SelectorEntry, DelegatedEntryNamesItsNamespaces) {
  Policy policy;
  policy.delegated[Namespace("team-a")] = {rule_for_app("train")};
  const auto wanted = wanted_selectors(policy);
  const Json entry = selector_entry(static_entry(), "x", wanted.begin()->second, kExcluded);
  EXPECT_THAT(entry["namespaceSelector"]["matchExpressions"].dump(),
              ::testing::HasSubstr(R"({"key":"kubernetes.io/metadata.name","operator":"In","values":["team-a"]})"));
}

}  // namespace
}  // namespace nezha::webhook
