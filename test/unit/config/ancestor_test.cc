// Aim: the ancestor's ConfigMap is read as its own users wrote it, and its mistakes are named.
#include <gtest/gtest.h>

#include "nezha/config/parse.h"
#include "test/unit/config/expect.h"

namespace nezha::config {
namespace {

constexpr std::string_view kList = R"(
- name: cifar
  app: tensorflow
  label: cifar-job
  hostAliases:
    - ip: 10.96.12.34
      hostnames: [www.cs.toronto.edu, yann.lecun.com]
    - ip: FD00::0:12
      hostnames:
        - storage.googleapis.com
- name: 2
  label: 42
  hostAliases: []
)";

TEST(Ancestor, ReadsTheList) {
  const auto rules = value_of(parse_ancestor(kList, "hostaliases-config/config"));
  ASSERT_EQ(rules.size(), 2U);
  EXPECT_EQ(rules[0].name.get(), "cifar");
  EXPECT_EQ(rules[0].app, "tensorflow");
  EXPECT_EQ(rules[0].label, "cifar-job");
  EXPECT_EQ(rules[0].aliases,
            (std::vector<AncestorRule::Alias>{
                {IpAddress("10.96.12.34"), {HostName("www.cs.toronto.edu"), HostName("yann.lecun.com")}},
                {IpAddress("fd00::12"), {HostName("storage.googleapis.com")}}}));
  EXPECT_EQ(rules[1].name.get(), "2");
  EXPECT_EQ(rules[1].label, "42");
  EXPECT_EQ(rules[1].app, "");
  EXPECT_TRUE(rules[1].aliases.empty());
}

TEST(Ancestor, AnEmptyListIsNoRules) { EXPECT_TRUE(value_of(parse_ancestor("[]", "f")).empty()); }

TEST(Ancestor, Errors) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "f: the document (line 1): is empty; write at least []"},
      {"name: x\n", "f: the document (line 1): is a map; write a list: [A, B]"},
      {"- {label: x, hostAliases: []}\n", "f: [0] (line 1): has no name; add for example name: cifar"},
      {"- {name: x, hostAliases: []}\n", "f: [0] (line 1): has no label; add for example label: cifar"},
      {"- {name: x, label: x}\n",
       "f: [0] (line 1): has no hostAliases; add for example hostAliases: [{ip: 10.96.12.34, "
       "hostnames: [www.cs.toronto.edu]}]"},
      {"- {name: x, label: x, hostAliases: [], hostaliases: []}\n",
       "f: [0].hostaliases (line 1): is an unknown key; did you mean hostAliases?"},
      {"- {name: x, label: 'a b', hostAliases: []}\n",
       "f: [0].label (line 1): \"a b\" is not a label value; write the value of the pod's label app"},
      {"- name: x\n  label: x\n  hostAliases:\n  - {ip: 10.0.0.256, hostnames: [a.example]}\n",
       "f: [0].hostAliases[0].ip (line 4): \"10.0.0.256\" is not an IP address; write for example 10.96.12.34 or "
       "fd00::12"},
      {"- {name: x, label: x, hostAliases: [{ip: 10.0.0.1, hostnames: ['*.a.example']}]}\n",
       "f: [0].hostAliases[0].hostnames[0] (line 1): \"*.a.example\" is a wildcard; list each host by name"},
      {"- {name: x, label: x, hostAliases: [{ip: 10.0.0.1, hostnames: [kubernetes.default.svc]}]}\n",
       "f: [0].hostAliases[0].hostnames[0] (line 1): \"kubernetes.default.svc\" is a name of the cluster itself; "
       "redirecting "
       "it would cut pods off, remove it"},
      {"- {name: x, label: x, hostAliases: [{ip: 10.0.0.1, hostnames: []}]}\n",
       "f: [0].hostAliases[0].hostnames (line 1): is empty; list at least one host"},
      {"- {name: x, label: x, hostAliases: []}\n- {name: x, label: y, hostAliases: []}\n",
       "f: [1].name (line 2): \"x\" is already the name of [0]; give each rule a name of its own"},
  };
  for (const auto& [yaml, wanted] : cases) EXPECT_EQ(error_of(parse_ancestor(yaml, "f")), wanted) << yaml;
}

}  // namespace
}  // namespace nezha::config
