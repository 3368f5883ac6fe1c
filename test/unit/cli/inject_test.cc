// inject: manifests whole, in and out.
#include "cli/inject.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "test/support/policies.h"

namespace nezha::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const webhook::Policy& policy() {
  static const auto value = test::make_policy({{"default", {"a.org"}, {}}}, {"10.0.0.1"});
  return value;
}

Manifest read(const std::string& text) { return read_manifest(text, "x").value(); }

std::string injected(const std::string& text, const Surroundings& around = {}) {
  const auto manifest = read(text);
  return write_manifest(inject(manifest, around, policy()).documents, manifest.format);
}

const std::string kJob = R"(apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: c
          env:
            - name: NAME
              value: "012"
    metadata:
      labels:
        nezha.io/inject: "true"
        version: "1e3"
  backoffLimit: 0
)";

TEST(Inject, ChangesTheTemplateAndNothingElse) {
  EXPECT_EQ(injected(kJob), R"(apiVersion: batch/v1
kind: Job
metadata:
  name: train
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: c
          env:
            - name: NAME
              value: "012"
      hostAliases:
        - ip: "10.0.0.1"
          hostnames:
            - a.org
    metadata:
      labels:
        nezha.io/inject: "true"
        version: "1e3"
      annotations:
        nezha.io/status: "{\"rule\":\"default\",\"mode\":\"central\",\"hosts\":[\"a.org\"],\"reasons\":[]}"
  backoffLimit: 0
)");
}

TEST(Inject, ASecondRunChangesNothing) { EXPECT_EQ(injected(injected(kJob)), injected(kJob)); }

TEST(Inject, APlainManifestComesOutAsItWentIn) {
  const std::string plain = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n    - name: c\n";
  EXPECT_EQ(injected(plain), plain);
}

TEST(Inject, EachTemplateOfAFileIsTreatedByItself) {
  const auto manifest = read(R"(
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: t, labels: {nezha.io/inject: "true"}}
spec:
  tfReplicaSpecs:
    PS: {template: {metadata: {labels: {nezha.io/inject: "true"}}, spec: {containers: []}}}
    Worker: {template: {spec: {containers: []}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: other}
)");
  const auto out = inject(manifest, {}, policy());
  EXPECT_EQ(out.templates, 2u);
  const auto& specs = out.documents[0]["spec"]["tfReplicaSpecs"];
  EXPECT_TRUE(specs["PS"]["template"]["spec"].contains("hostAliases"));
  EXPECT_EQ(specs["Worker"], manifest.documents[0]["spec"]["tfReplicaSpecs"]["Worker"]);
  EXPECT_EQ(out.documents[1], manifest.documents[1]);
}

TEST(Inject, ANotebookIsInjectedByItsOwnLabelWithoutGainingLabels) {
  const auto manifest = read(
      "apiVersion: kubeflow.org/v1\nkind: Notebook\nmetadata: {name: n, labels: {nezha.io/inject: 'true'}}\n"
      "spec: {template: {spec: {containers: []}}}\n");
  const auto out = inject(manifest, {}, policy());
  const auto& pod_template = out.documents[0]["spec"]["template"];
  EXPECT_TRUE(pod_template["spec"].contains("hostAliases"));
  EXPECT_FALSE(pod_template["metadata"].contains("labels"));
}

TEST(Inject, LabelsOfTheNamespaceHoldWhereTheUserSaysTheyDo) {
  const std::string pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team}\nspec: {containers: []}\n";
  Surroundings around;
  EXPECT_THAT(injected(pod, around), testing::Not(HasSubstr("hostAliases")));
  around.namespace_labels = {{"nezha.io/inject", "true"}};
  EXPECT_THAT(injected(pod, around), HasSubstr("hostAliases"));
  around.labels_hold_everywhere = false;  // as with --namespace default
  EXPECT_THAT(injected(pod, around), testing::Not(HasSubstr("hostAliases")));
  around.name_space = Namespace("team");
  EXPECT_THAT(injected(pod, around), HasSubstr("hostAliases"));
}

TEST(Inject, WarningsNameTheTemplate) {
  const auto policy_of_sidecars = test::make_policy({{"near", {"a.org"}, {}, config::Mode::kSidecar}}, {"10.0.0.1"});
  EXPECT_THAT(
      inject(read(kJob), {}, policy_of_sidecars).warnings,
      ElementsAre("Job/train spec.template: rule near uses central: the configuration has no webhook.sidecar.image"));
  EXPECT_THAT(inject(read(kJob), {}, policy()).warnings, IsEmpty());
}

TEST(Inject, SaysWhyASparkApplicationStaysAsItIs) {
  const auto manifest = read("kind: SparkApplication\nmetadata: {name: s}\nspec: {driver: {}, executor: {}}\n");
  const auto out = inject(manifest, {}, policy());
  EXPECT_EQ(out.documents, manifest.documents);
  EXPECT_EQ(out.templates, 2);
  EXPECT_THAT(out.warnings,
              ElementsAre(HasSubstr("s spec.driver: left as it is; its pods get aliases from the webhook"),
                          HasSubstr("s spec.executor: left as it is;")));
}

}  // namespace
}  // namespace nezha::cli
