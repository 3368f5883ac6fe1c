#include "nezha/k8s/pod.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

namespace nezha::k8s {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Pod> read(const char* text) { return read_pod(nlohmann::json::parse(text)); }

TEST(ReadPod, TellsAbsentFromNullFromPresent) {
  EXPECT_EQ(read(R"({"spec":{}})").value().host_aliases_presence, Presence::kAbsent);
  EXPECT_EQ(read(R"({"spec":{"hostAliases":null}})").value().host_aliases_presence, Presence::kNull);
  EXPECT_EQ(read(R"({"spec":{"hostAliases":[]}})").value().host_aliases_presence, Presence::kPresent);
  EXPECT_EQ(read(R"({"spec":{}})").value().metadata_presence, Presence::kAbsent);
  EXPECT_EQ(read(R"({"metadata":null,"spec":{}})").value().metadata_presence, Presence::kNull);
  EXPECT_EQ(read(R"({"metadata":{"annotations":null},"spec":{}})").value().annotations_presence, Presence::kNull);
  EXPECT_EQ(read(R"({"spec":{"hostAliases":[{"ip":"1.1.1.1","hostnames":null}]}})")
                .value()
                .host_aliases[0]
                .hostnames_presence,
            Presence::kNull);
}

TEST(ReadPod, ReadsWhatTheWebhookNeeds) {
  const auto pod = read(R"({"metadata":{"generateName":"g-","labels":{"a":"1","n":null},"annotations":{"b":"2"}},
    "spec":{"hostNetwork":true,"hostAliases":[{"ip":"1.1.1.1","hostnames":["x","y"]}],
            "initContainers":[{"name":"i","volumeMounts":[{"mountPath":"/m"}]}],"containers":[{"name":"c"}]}})")
                       .value();
  EXPECT_EQ(pod.generate_name, "g-");
  EXPECT_EQ(*pod.label("a"), "1");
  EXPECT_EQ(*pod.label("n"), "");
  EXPECT_EQ(pod.label("b"), nullptr);
  EXPECT_EQ(*pod.annotation("b"), "2");
  EXPECT_TRUE(pod.host_network);
  EXPECT_THAT(pod.host_aliases.at(0).hostnames, ElementsAre("x", "y"));
  EXPECT_EQ(pod.containers.at(0).name, "i");
  ASSERT_EQ(pod.containers.at(0).mounts.size(), 1u);
  EXPECT_EQ(pod.containers.at(0).mounts[0].path, "/m");
  EXPECT_EQ(pod.containers.at(1).name, "c");
}

TEST(ReadPod, ReadsWhatTrustDependsOn) {
  const auto pod = read(R"({"spec":{
    "volumes":[{"name":"t","configMap":{"name":"nezha-trust"}},{"name":"e","emptyDir":{}},
      {"name":"n","configMap":null}],
    "initContainers":[{"name":"i","env":null}],
    "containers":[{"name":"a"},{"name":"b","volumeMounts":[{"name":"t","mountPath":"/t"}],
      "env":[{"name":"A","value":"1"},{"name":"A","valueFrom":{"fieldRef":{}}},{"name":"B","value":"2"}]}],
    "ephemeralContainers":[{"name":"d"}]}})")
                       .value();
  EXPECT_THAT(pod.config_map_volumes, ElementsAre(testing::Pair("t", "nezha-trust")));
  EXPECT_EQ(pod.containers.at(0).env_presence, Presence::kNull);
  EXPECT_EQ(pod.containers.at(0).mounts_presence, Presence::kAbsent);
  const auto& b = pod.containers.at(2);
  EXPECT_EQ(b.item, 1u);
  EXPECT_EQ(b.mounts.at(0).volume, "t");
  EXPECT_EQ(b.value("A"), nullptr) << "the last one counts";
  EXPECT_EQ(*b.value("B"), "2");
  EXPECT_TRUE(pod.containers.at(3).is_ephemeral);
}

TEST(ReadPod, ReadsWhatASidecarDependsOn) {
  const auto pod = read(R"({"spec":{
    "initContainers":[{"name":"s","restartPolicy":"Always","env":[{"name":"A","value":"1"},{"name":"B"}]},{"name":"i"}],
    "containers":[{"name":"c","restartPolicy":"Always","ports":[{"containerPort":80,"hostPort":81}],
      "livenessProbe":{"httpGet":{"port":82}},"readinessProbe":{"httpGet":{"port":1,"host":"elsewhere.example"}},
      "startupProbe":{"tcpSocket":{"port":"named"}},"lifecycle":{"preStop":{"httpGet":{"port":83}}}}],
    "volumes":[{"name":"v"}],"securityContext":{"fsGroup":1,"sysctls":[{"name":"n","value":"2"}]},
    "resources":{"limits":{}},"os":{"name":"windows"}}})")
                       .value();
  EXPECT_TRUE(pod.containers.at(0).is_init);
  EXPECT_TRUE(pod.containers.at(0).is_native_sidecar);
  EXPECT_EQ(*pod.containers.at(0).value("A"), "1");
  EXPECT_EQ(*pod.containers.at(0).value("B"), "");
  EXPECT_EQ(pod.containers.at(0).value("C"), nullptr);
  EXPECT_FALSE(pod.containers.at(1).is_native_sidecar);
  EXPECT_FALSE(pod.containers.at(2).is_init);
  EXPECT_FALSE(pod.containers.at(2).is_native_sidecar);
  EXPECT_THAT(pod.containers.at(2).ports, ElementsAre(80, 81, 82, 83));
  EXPECT_THAT(pod.volumes, ElementsAre("v"));
  EXPECT_EQ(pod.init_containers_presence, Presence::kPresent);
  EXPECT_EQ(pod.volumes_presence, Presence::kPresent);
  EXPECT_EQ(pod.security_context_presence, Presence::kPresent);
  EXPECT_EQ(pod.sysctls_presence, Presence::kPresent);
  EXPECT_EQ(pod.sysctls.at(0).name, "n");
  EXPECT_EQ(pod.sysctls.at(0).value, "2");
  EXPECT_TRUE(pod.has_fs_group);
  EXPECT_TRUE(pod.has_pod_resources);
  EXPECT_TRUE(pod.is_windows);
  EXPECT_FALSE(read(R"({"spec":{"resources":{}}})").value().has_pod_resources);
}

TEST(ReadPod, NamesThePathOfTheFirstWrongValue) {
  const std::pair<const char*, const char*> cases[] = {
      {R"(5)", "not a pod"},
      {R"({})", "spec is not an object"},
      {R"({"spec":[]})", "spec is not an object"},
      {R"({"metadata":[],"spec":{}})", "metadata is not an object"},
      {R"({"metadata":{"labels":{"a":true}},"spec":{}})", "metadata.labels[\"a\"] is not a string; put it in quotes"},
      {R"({"metadata":{"annotations":[]},"spec":{}})", "metadata.annotations is not an object"},
      {R"({"spec":{"hostAliases":[{"ip":"1"},{"ip":2}]}})", "spec.hostAliases[1].ip is not a string"},
      {R"({"spec":{"hostAliases":[null]}})", "spec.hostAliases[0] is not an object"},
      {R"({"spec":{"hostAliases":[{"hostnames":[1]}]}})", "spec.hostAliases[0].hostnames is not a list of strings"},
      {R"({"spec":{"containers":[{"volumeMounts":{}}]}})", "spec.containers[0].volumeMounts is not a list"}};
  for (const auto& [text, message] : cases) {
    const auto pod = read(text);
    ASSERT_FALSE(pod) << text;
    EXPECT_THAT(pod.error().message, HasSubstr(message)) << text;
  }
}

}  // namespace
}  // namespace nezha::k8s
