// Where pods stand in manifests, by shape.
#include "cli/templates.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/manifest.h"
#include "cli/spark.h"

namespace nezha::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

nlohmann::ordered_json read(const std::string& text) { return read_manifest(text, "x").value().documents.at(0); }

std::vector<std::string> places(const std::string& text) {
  std::vector<std::string> out;
  for (const auto& found : find_templates(read(text))) out.push_back(found.title() + " -> " + found.labels_path);
  return out;
}

const std::string kTemplate = "{metadata: {labels: {a: b}}, spec: {containers: [{name: c}]}}";

std::string object(const std::string& kind, const std::string& rest) {
  return "apiVersion: x/v1\nkind: " + kind + "\nmetadata: {name: n}\n" + rest;
}

TEST(Templates, AreFoundInTheKindsOfKubernetes) {
  EXPECT_THAT(places(object("Pod", "spec: {containers: [{name: c}]}")), ElementsAre("Pod/n -> metadata.labels"));
  for (const char* kind :
       {"Job", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Notebook"})
    EXPECT_THAT(places(object(kind, "spec: {template: " + kTemplate + "}")),
                ElementsAre(std::string(kind) + "/n spec.template -> spec.template.metadata.labels"));
  EXPECT_THAT(
      places(object("CronJob", "spec: {jobTemplate: {spec: {template: " + kTemplate + "}}}")),
      ElementsAre("CronJob/n spec.jobTemplate.spec.template -> spec.jobTemplate.spec.template.metadata.labels"));
  EXPECT_THAT(places(object("PodTemplate", "template: " + kTemplate)),
              ElementsAre("PodTemplate/n template -> template.metadata.labels"));
}

TEST(Templates, AreFoundPerReplicaOfTrainingJobs) {
  for (const char* key : {"tfReplicaSpecs", "pytorchReplicaSpecs", "mpiReplicaSpecs"}) {
    const std::string roles = std::string("spec: {") + key + ": {Master: {template: " + kTemplate +
                              "}, Worker: {template: " + kTemplate + "}}}";
    EXPECT_EQ(places(object("AnyJob", roles)).size(), 2u) << key;
  }
  EXPECT_THAT(
      places(object("JobSet", "spec: {replicatedJobs: [{name: a, template: {spec: {template: " + kTemplate + "}}}]}")),
      ElementsAre("JobSet/n spec.replicatedJobs[0].template.spec.template -> "
                  "spec.replicatedJobs[0].template.spec.template.metadata.labels"));
  EXPECT_EQ(places(object("LeaderWorkerSet", "spec: {leaderWorkerTemplate: {leaderTemplate: " + kTemplate +
                                                 ", workerTemplate: " + kTemplate + "}}"))
                .size(),
            2u);
}

TEST(Templates, AreFoundInLists) {
  const std::string list =
      "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}, spec: "
      "{containers: []}}\n"
      "- {apiVersion: batch/v1, kind: Job, metadata: {generateName: j-}, spec: {template: " +
      kTemplate + "}}\n";
  EXPECT_THAT(places(list),
              ElementsAre("Pod/p -> metadata.labels", "Job/j- spec.template -> spec.template.metadata.labels"));
  const auto found = find_templates(read(list));
  EXPECT_EQ(found[0].pointer, "/items/0");
  EXPECT_EQ(found[0].owner_namespace, "a");
  EXPECT_EQ(found[1].pointer, "/items/1/spec/template");
  EXPECT_EQ(found[1].owner_namespace, "");
}

TEST(Templates, AreNotSeenInWhatOnlyLooksAlike) {
  EXPECT_THAT(places(object("ConfigMap", "data: {template: 'spec: {containers: []}'}")), IsEmpty());
  EXPECT_THAT(places(object("StatefulSet", "spec: {volumeClaimTemplates: [{spec: {storageClassName: x}}]}")),
              IsEmpty());
  EXPECT_THAT(places(object("Foo", "spec: {containers: [{name: c}]}")), IsEmpty());
  EXPECT_THAT(places(object("Job", "spec: {template: null}")), IsEmpty());
  EXPECT_THAT(places(object("Job", "spec: {template: {spec: {containers: 5}}}")), IsEmpty());
  EXPECT_THAT(places("[1, null, text]"), IsEmpty());
}

TEST(Templates, ANotebooksLabelsReachItsPod) {
  const auto notebook = read(
      "apiVersion: kubeflow.org/v1\nkind: Notebook\nmetadata: {name: n, labels: {nezha.io/inject: 'true'}}\n"
      "spec: {template: {metadata: null, spec: {containers: []}}}\n");
  const auto found = find_templates(notebook).at(0);
  EXPECT_TRUE(found.copied_labels);
  EXPECT_EQ(effective_pod(notebook, found)["metadata"]["labels"]["nezha.io/inject"], "true");
  const auto job = read(
      "apiVersion: batch/v1\nkind: Job\nmetadata: {name: n, labels: {nezha.io/inject: 'true'}}\n"
      "spec: {template: {spec: {containers: []}}}\n");
  EXPECT_FALSE(effective_pod(job, find_templates(job).at(0)).contains("metadata"));
}

TEST(SparkRoles, AreReadFromTheApplication) {
  const auto roles = find_spark_roles(read(
      object("SparkApplication",
             "spec: {driver: {labels: {a: b}, hostAliases: [{ip: 1.1.1.1, hostnames: [x]}]}, executor: {cores: 1}}")));
  ASSERT_EQ(roles.size(), 2u);
  EXPECT_EQ(roles[0].pod["metadata"]["labels"]["a"], "b");
  EXPECT_EQ(roles[0].pod["spec"]["hostAliases"][0]["ip"], "1.1.1.1");
  EXPECT_EQ(roles[1].found.labels_path, "spec.executor.labels");
  EXPECT_TRUE(find_spark_roles(read(object("Job", "spec: {driver: {}}"))).empty());
}

}  // namespace
}  // namespace nezha::cli
