// explain: the words a user reads.
#include "cli/explain.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "test/support/policies.h"

namespace nezha::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string explained(const std::string& text, const Surroundings& around = {}) {
  auto policy = test::make_policy({{"default", {"a.org", "b.org"}, {}}}, {"10.0.0.1"});
  policy.ancestor = {{RuleName("old"), "x", "mnist", {{IpAddress("10.0.0.2"), {HostName("c.org")}}}}};
  return explain(read_manifest(text, "x").value(), around, policy);
}

TEST(Explain, ShowsRuleModeAndAliases) {
  EXPECT_EQ(
      explained(
          "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {nezha.io/inject: 'true'}}\nspec: {containers: []}"),
      "Pod/p (namespace default): accelerated\n"
      "  considered: by the pod's label\n"
      "  rule:       default\n"
      "  mode:       central\n"
      "  alias:      10.0.0.1  a.org b.org\n");
}

TEST(Explain, ShowsTheSidecar) {
  auto policy = test::make_policy({{"near", {"a.org"}, {}, config::Mode::kSidecar}}, {"10.0.0.1"});
  auto settings = std::make_shared<config::Settings>(*policy.settings);
  settings->webhook.sidecar.emplace().image = "example.org/nezha-cache:1";
  policy.settings = std::move(settings);
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {nezha.io/inject: 'true'}}\nspec: {containers: []}";
  EXPECT_EQ(explain(read_manifest(pod, "x").value(), {}, policy),
            "Pod/p (namespace default): accelerated\n"
            "  considered: by the pod's label\n"
            "  rule:       near\n"
            "  mode:       sidecar\n"
            "  sidecar:    nezha-cache from example.org/nezha-cache:1, an emptyDir of 10240 MiB\n"
            "  alias:      127.0.0.1  a.org\n");
}

TEST(Explain, SaysWhichReplicaLacksTheLabelAndWhereItMustGo) {
  const auto text = explained(R"(
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: t, namespace: team, labels: {nezha.io/inject: "true"}}
spec:
  tfReplicaSpecs:
    PS: {template: {metadata: {labels: {nezha.io/inject: "true"}}, spec: {containers: []}}}
    Worker: {template: {spec: {containers: []}}}
)");
  EXPECT_THAT(text, HasSubstr("TFJob/t spec.tfReplicaSpecs.PS.template (namespace team): accelerated"));
  EXPECT_THAT(text, HasSubstr("TFJob/t spec.tfReplicaSpecs.Worker.template (namespace team): left as it is"));
  EXPECT_THAT(text, HasSubstr("the label on the TFJob itself does not reach its pods"));
  EXPECT_THAT(
      text,
      HasSubstr("put the label nezha.io/inject: \"true\" under spec.tfReplicaSpecs.Worker.template.metadata.labels"));
}

TEST(Explain, NamesAMisspeltValue) {
  EXPECT_THAT(
      explained(
          "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {nezha.io/inject: 'yes'}}\nspec: {containers: []}"),
      HasSubstr("is \"yes\", not \"true\""));
}

TEST(Explain, DoesNotAdviseAPodThatOptedOut) {
  const auto text = explained(
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {nezha.io/inject: 'false'}}\nspec: {containers: []}");
  EXPECT_THAT(text, AllOf(HasSubstr("left as it is"), HasSubstr("is \"false\""), Not(HasSubstr("do this"))));
}

TEST(Explain, FollowsTheAncestorsNamespaceLabel) {
  const std::string pod =
      "apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {app: mnist}}\nspec: {containers: []}";
  EXPECT_THAT(explained(pod), HasSubstr("left as it is"));
  Surroundings around;
  around.namespace_labels = {{"hostaliases-injector", "enabled"}};
  EXPECT_THAT(explained(pod, around), AllOf(HasSubstr("rule:       old"), HasSubstr("10.0.0.2  c.org")));
}

TEST(Explain, ReadsSparkRolesAsPods) {
  const auto text = explained(
      "apiVersion: s/v1\nkind: SparkApplication\nmetadata: {name: s}\n"
      "spec: {driver: {labels: {nezha.io/inject: 'true'}}, executor: {}}");
  EXPECT_THAT(text, HasSubstr("SparkApplication/s spec.driver (namespace default): accelerated"));
  EXPECT_THAT(text, HasSubstr("under spec.executor.labels"));
}

TEST(Explain, SaysWhenThereIsNoPod) {
  EXPECT_EQ(explained("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}"),
            "no pod and no pod template in the input\n");
}

TEST(Explain, APodThatCannotBeReadIsNamedWithItsFault) {
  EXPECT_THAT(explained("apiVersion: v1\nkind: Pod\nmetadata: {name: p, labels: {nezha.io/inject: 'true'}}\nspec: "
                        "{containers: [], hostAliases: 5}"),
              AllOf(HasSubstr("left as it is"),
                    HasSubstr("reason:     the pod was left as it is: spec.hostAliases is not a list")));
}

}  // namespace
}  // namespace nezha::cli
