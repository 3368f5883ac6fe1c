// Aim: a namespace's own ConfigMap chooses among what the admin delegates to it, and can do nothing else.
#include <gtest/gtest.h>

#include "nezha/config/parse.h"
#include "test/unit/config/expect.h"

namespace nezha::config {
namespace {

Settings admin_settings(const std::string& delegation) {
  return value_of(
      parse_settings("upstreams: [{name: data, hosts: [a.example]}, {name: models, hosts: [b.example]}, {name: secret, "
                     "hosts: [c.example]}]\n"
                     "delegation: " +
                         delegation,
                     "admin"));
}

Result<std::vector<InjectionRule>> delegated(std::string_view yaml, const Settings& admin,
                                             const char* name_space = "team-a") {
  return parse_delegated(yaml, "team-a/mine", Namespace(name_space), admin);
}

std::string rule_with(const std::string& upstreams) {
  return "injection:\n- {name: mine, selector: {matchLabels: {x: y}}, upstreams: [" + upstreams + "]}\n";
}

TEST(Delegated, TakesRulesWithinTheDelegation) {
  const Settings admin =
      admin_settings("[{namespaces: [team-a], upstreams: [data]}, {namespaces: ['*'], upstreams: [models]}]");
  const auto rules = value_of(delegated(rule_with("models, data"), admin));
  ASSERT_EQ(rules.size(), 1U);
  EXPECT_EQ(rules[0].upstreams, (std::vector{UpstreamName("models"), UpstreamName("data")}));
}

TEST(Delegated, AStarDelegatesEveryUpstream) {
  const Settings admin = admin_settings("[{namespaces: ['*'], upstreams: ['*']}]");
  EXPECT_EQ(value_of(delegated(rule_with("secret"), admin)).size(), 1U);
}

TEST(Delegated, RefusesWhatIsNotDelegated) {
  const std::string wanted =
      "team-a/mine: injection[0].upstreams[0] (line 2): \"secret\" is not delegated to namespace "
      "\"team-a\"; ask the cluster's admin to name it under delegation";
  for (const char* delegation :
       {"[]", "[{namespaces: [team-a], upstreams: [data]}]", "[{namespaces: [team-b], upstreams: ['*']}]"})
    EXPECT_EQ(error_of(delegated(rule_with("secret"), admin_settings(delegation))), wanted) << delegation;
}

TEST(Delegated, AStarIsNoUpstreamName) {
  const Settings admin = admin_settings("[{namespaces: ['*'], upstreams: ['*']}]");
  EXPECT_EQ(error_of(delegated(rule_with("'*'"), admin)),
            "team-a/mine: injection[0].upstreams[0] (line 2): \"*\" is not delegated to namespace \"team-a\"; ask the "
            "cluster's admin to name it under delegation");
}

TEST(Delegated, RefusesEveryOtherSection) {
  const Settings admin = admin_settings("[{namespaces: ['*'], upstreams: ['*']}]");
  for (const char* section : {"upstreams", "delegation", "cache", "webhook", "listen", "resolver", "tls", "anything"})
    EXPECT_EQ(
        error_of(delegated("injection: []\n" + std::string(section) + ": []\n", admin)),
        "team-a/mine: " + std::string(section) +
            " (line 2): is not allowed in a namespace's own configuration; keep injection only and ask the cluster's "
            "admin for the rest");
}

TEST(Delegated, NeedsAnInjectionSection) {
  const Settings admin = admin_settings("[]");
  EXPECT_EQ(error_of(delegated("", admin)),
            "team-a/mine: the document (line 1): is empty; write at least injection: []");
  EXPECT_EQ(error_of(delegated("{}", admin)),
            "team-a/mine: the document (line 1): has no injection; add for example injection: []");
  EXPECT_TRUE(value_of(delegated("injection: []", admin)).empty());
}

}  // namespace
}  // namespace nezha::config
