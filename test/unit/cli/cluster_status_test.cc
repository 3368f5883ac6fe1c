// cluster_status: the table an operator reads, and who counts as missed.
#include "cli/cluster_status.h"

#include <gtest/gtest.h>

namespace nezha::cli {
namespace {

std::string list_of(const std::string& items) { return R"({"kind":"List","items":[)" + items + "]}"; }

std::string name_space(const std::string& name, const std::string& labels = "{}") {
  return R"({"kind":"Namespace","metadata":{"name":")" + name + R"(","labels":)" + labels + "}}";
}

// `status`: of the annotation, as it stands in JSON.
std::string pod(const std::string& where, const std::string& name, const std::string& labels,
                const std::string& status = "", const std::string& phase = "Running") {
  const std::string annotations = status.empty() ? "{}" : R"({"nezha.io/status":")" + status + R"("})";
  return R"({"kind":"Pod","metadata":{"name":")" + name + R"(","namespace":")" + where + R"(","labels":)" + labels +
         R"(,"annotations":)" + annotations + R"(},"spec":{"containers":[]},"status":{"phase":")" + phase + R"("}})";
}

const std::string kOn = R"({"nezha.io/inject":"true"})", kOff = R"({"nezha.io/inject":"false"})", kNone = "{}";

TEST(ClusterStatus, IsATable) {
  const std::string near =
      R"({\"rule\":\"near\",\"mode\":\"sidecar\",\"hosts\":[\"a.org\",\"b.org\"],\"hostsMore\":3,\"reasons\":[]})";
  const std::string far =
      R"({\"rule\":\"near\",\"mode\":\"central\",\"hosts\":[\"a.org\"],\"reasons\":[\"no sidecar\",\"x\"]})";
  const auto found =
      cluster_status(list_of(name_space("b") + "," + name_space("a", kOn) + "," + pod("b", "train-0", kOn, near) + "," +
                             pod("b", "train-1", kOn) + "," + pod("a", "web", kNone, far)));
  ASSERT_TRUE(found);
  EXPECT_EQ(found.value().text,
            "NAMESPACE  POD      MODE     RULE  HOSTS  REMARKS\n"
            "a          web      central  near  1      no sidecar; x\n"
            "b          train-0  sidecar  near  5\n"
            "b          train-1  -        -     0      missed: no webhook answered when it was created, or no rule was "
            "for it; it reads from the real servers\n"
            "\n3 pods opted in: 1 missed, 0 with no host that is read from the cache\n");
  EXPECT_EQ(found.value().missed, 1u);
}

TEST(ClusterStatus, MissedIsWhoAskedAndRuns) {
  const std::string spaces = name_space("in", kOn) + "," + name_space("out") + ",";
  const struct {
    std::string pod;
    size_t missed;
  } cases[] = {
      {pod("in", "p", kNone), 1},
      {pod("in", "p", kNone, "", "Pending"), 1},
      {pod("in", "p", kOff), 0},
      {pod("in", "p", kNone, "", "Succeeded"), 0},
      {pod("in", "p", kNone, "", "Failed"), 0},
      {pod("out", "p", kNone), 0},
      {pod("out", "p", kOn), 1},
      {pod("kube-system", "p", kOn), 0},
      {pod("out", "p", R"({"nezha.io/inject":"yes"})"), 0},
      {R"({"kind":"Pod","metadata":{"name":"p","namespace":"in","annotations":{"kubernetes.io/config.mirror":"1"}},
          "spec":{"containers":[]}})",
       0},
      {R"({"kind":"Pod","metadata":"broken"})", 0},
  };
  for (const auto& one : cases) {
    const auto found = cluster_status(list_of(spaces + one.pod));
    ASSERT_TRUE(found) << one.pod;
    EXPECT_EQ(found.value().missed, one.missed) << one.pod;
  }
}

TEST(ClusterStatus, AStatusThatIsNotOursIsSaid) {
  const auto found = cluster_status(list_of(name_space("a") + "," + pod("a", "p", kOn, "whatever")));
  ASSERT_TRUE(found);
  EXPECT_NE(found.value().text.find("its annotation nezha.io/status is not Nezha's"), std::string::npos);
  EXPECT_EQ(found.value().missed, 0u);
}

TEST(ClusterStatus, WhatIsNoListIsRefused) {
  for (const std::string text : {"", "no json", "[]", "{}", R"({"items":{}})", R"({"items":[]})", R"({"items":[1]})"}) {
    const auto found = cluster_status(text);
    ASSERT_FALSE(found) << text;
    EXPECT_NE(found.error().message.find("kubectl get namespaces,pods -A -o json"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace nezha::cli
