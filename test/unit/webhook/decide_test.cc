// decide(): which rules match, what wins, and the reasons. Pods and policies made by hand.
#include "webhook/decide.h"

#include <gmock/gmock.h>

#include "nezha/k8s/pod.h"
#include "test/support/policies.h"

namespace nezha::webhook {
namespace {

using test::make_pod;
using test::make_policy;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

k8s::Pod pod_of(const nlohmann::json& object) { return k8s::read_pod(object).value(); }

std::vector<std::string> hosts(const WantedAlias& alias) {
  std::vector<std::string> names;
  for (const auto& host : alias.hosts) names.push_back(host.get());
  return names;
}

Decision decide_pod(const nlohmann::json& pod, const Policy& policy, Entry entry = Entry::kPod) {
  return decide(entry, Namespace("team"), pod_of(pod), policy);
}

using Operator = config::LabelSelector::Operator;

struct SelectorCase {
  const char* name;
  config::LabelSelector selector;
  std::map<std::string, std::string> labels;
  bool matches;
};

class Selector : public testing::TestWithParam<SelectorCase> {};
TEST_P(Selector, MatchesAsInKubernetes) {
  EXPECT_EQ(matches(GetParam().selector, GetParam().labels), GetParam().matches);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, Selector,
    testing::Values(SelectorCase{"empty_matches_all", {}, {}, true},
                    SelectorCase{"label_equal", {{{"a", "1"}}, {}}, {{"a", "1"}}, true},
                    SelectorCase{"label_other_value", {{{"a", "1"}}, {}}, {{"a", "2"}}, false},
                    SelectorCase{"label_absent", {{{"a", ""}}, {}}, {}, false},
                    SelectorCase{"in", {{}, {{"a", Operator::kIn, {"1", "2"}}}}, {{"a", "2"}}, true},
                    SelectorCase{"in_absent", {{}, {{"a", Operator::kIn, {"1"}}}}, {}, false},
                    SelectorCase{"not_in", {{}, {{"a", Operator::kNotIn, {"1"}}}}, {{"a", "1"}}, false},
                    SelectorCase{"not_in_absent", {{}, {{"a", Operator::kNotIn, {"1"}}}}, {}, true},
                    SelectorCase{"exists", {{}, {{"a", Operator::kExists, {}}}}, {{"a", ""}}, true},
                    SelectorCase{"exists_absent", {{}, {{"a", Operator::kExists, {}}}}, {}, false},
                    SelectorCase{"does_not_exist", {{}, {{"a", Operator::kDoesNotExist, {}}}}, {{"a", ""}}, false},
                    SelectorCase{"all_must_hold", {{{"a", "1"}}, {{"b", Operator::kExists, {}}}}, {{"a", "1"}}, false}),
    [](const auto& c) { return c.param.name; });

TEST(Decide, MergesRulesInTheOrderOfConfiguration) {
  const auto policy =
      make_policy({{"b", {"b.org", "shared.org"}, {}}, {"a", {"shared.org", "a.org"}, {}}}, {"10.0.0.1"});
  const auto decision = decide_pod(make_pod(), policy);
  EXPECT_EQ(decision.verdict, Verdict::kInject);
  EXPECT_THAT(decision.rules, ElementsAre("b", "a"));
  ASSERT_EQ(decision.aliases.size(), 1u);
  EXPECT_THAT(hosts(decision.aliases[0]), ElementsAre("b.org", "shared.org", "a.org"));
  EXPECT_THAT(decision.reasons, IsEmpty());
}

TEST(Decide, RuleWithoutSelectorServesOptedInPodsOnly) {
  auto policy = make_policy({{"all", {"a.org"}, {}}}, {"10.0.0.1"});
  auto settings = *policy.settings;
  settings.injection[0].selector = {};
  policy.settings = std::make_shared<const config::Settings>(settings);
  EXPECT_EQ(decide_pod(make_pod(), policy).verdict, Verdict::kInject);
  auto plain = make_pod();
  plain["metadata"]["labels"] = {{"app", "web"}};
  EXPECT_EQ(decide_pod(plain, policy, Entry::kSelector).verdict, Verdict::kNoRule);
  EXPECT_EQ(decide_pod(plain, policy, Entry::kNamespace).verdict, Verdict::kInject);
}

TEST(Decide, OptOutBeatsEveryEntry) {
  auto policy = make_policy({{"a", {"a.org"}, {}}}, {"10.0.0.1"});
  policy.ancestor = {{RuleName("old"), "x", "mnist", {{IpAddress("10.0.0.2"), {HostName("a.org")}}}}};
  auto pod = make_pod({{"app", "mnist"}});
  pod["metadata"]["labels"]["nezha.io/inject"] = "false";
  for (const auto entry : {Entry::kPod, Entry::kNamespace, Entry::kSelector, Entry::kAncestor})
    EXPECT_EQ(decide_pod(pod, policy, entry).verdict, Verdict::kOptedOut);
}

TEST(Decide, RuleOfTheNamespaceIsFoundByItsNameBeforeTheClusters) {
  auto policy = make_policy({{"mine", {"cluster.org"}, {}}, {"up", {"own.org"}, {{"never", "1"}}}}, {"10.0.0.1"});
  config::InjectionRule own;
  own.name = RuleName("mine");
  own.upstreams = {UpstreamName("up")};
  policy.delegated[Namespace("team")] = {own};
  auto pod = make_pod();
  pod["metadata"]["annotations"] = {{"nezha.io/config", "mine"}};
  const auto decision = decide_pod(pod, policy);
  EXPECT_THAT(decision.rules, ElementsAre("team/mine"));
  EXPECT_THAT(hosts(decision.aliases.at(0)), ElementsAre("own.org"));
  EXPECT_THAT(decide(Entry::kPod, Namespace("other"), pod_of(pod), policy).rules, ElementsAre("mine"));
}

TEST(Decide, CommaInARuleNameCannotSplitTheStatus) {
  const auto policy = make_policy({{"a,b", {"a.org"}, {}}}, {"10.0.0.1"});
  EXPECT_THAT(decide_pod(make_pod(), policy).rules, ElementsAre("a_b"));
}

TEST(Decide, MissingUpstreamIsAReasonNotAFailure) {
  auto policy = make_policy({{"a", {"a.org"}, {}}}, {"10.0.0.1"});
  auto settings = *policy.settings;
  settings.injection[0].upstreams.insert(settings.injection[0].upstreams.begin(), UpstreamName("gone"));
  policy.settings = std::make_shared<const config::Settings>(settings);
  const auto decision = decide_pod(make_pod(), policy);
  EXPECT_EQ(decision.verdict, Verdict::kInject);
  EXPECT_THAT(decision.reasons, ElementsAre(HasSubstr("no upstream \"gone\"")));
}

TEST(Decide, FirstRuleDecidesTheAddressOfAHost) {
  auto policy = make_policy({{"ours", {"a.org"}, {}}}, {"10.0.0.1"});
  policy.ancestor = {
      {RuleName("old"), "x", "mnist", {{IpAddress("10.0.0.2"), {HostName("a.org"), HostName("b.org")}}}}};
  const auto decision = decide_pod(make_pod({{"app", "mnist"}}), policy);
  ASSERT_EQ(decision.aliases.size(), 2u);
  EXPECT_THAT(hosts(decision.aliases[0]), ElementsAre("a.org"));
  EXPECT_THAT(hosts(decision.aliases[1]), ElementsAre("b.org"));
  EXPECT_THAT(decision.reasons, ElementsAre(HasSubstr("rule old wants another address than rule ours")));
}

TEST(Decide, UnknownCacheStillLetsTheAncestorsRulesApply) {
  auto policy = make_policy({{"ours", {"a.org"}, {}}}, {});
  EXPECT_EQ(decide_pod(make_pod({{"app", "mnist"}}), policy).verdict, Verdict::kCacheUnknown);
  policy.ancestor = {{RuleName("old"), "x", "mnist", {{IpAddress("10.0.0.2"), {HostName("b.org")}}}}};
  const auto decision = decide_pod(make_pod({{"app", "mnist"}}), policy);
  EXPECT_EQ(decision.verdict, Verdict::kInject);
  EXPECT_THAT(decision.reasons, ElementsAre(HasSubstr("address of the cache is not known")));
}

TEST(Decide, UserTextIsShortenedAndCleanedInReasons) {
  const auto policy = make_policy({{"a", {"a.org"}, {}}}, {"10.0.0.1"});
  auto pod = make_pod();
  std::string mode = "x\n";
  for (int i = 0; i < 100; ++i) mode += "\u00e9";
  pod["metadata"]["annotations"] = {{"nezha.io/mode", mode}};
  const auto reasons = decide_pod(pod, policy).reasons;
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_THAT(reasons[0], HasSubstr("\"x?\u00e9"));
  EXPECT_LT(reasons[0].size(), 200u);
  EXPECT_NO_THROW(nlohmann::json(reasons[0]).dump());  // no character was cut in two
}

}  // namespace
}  // namespace nezha::webhook
