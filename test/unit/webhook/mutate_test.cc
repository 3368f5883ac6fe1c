// mutate() and to_patch(): which edits, which operations, in which order.
#include "webhook/mutate.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "webhook/respond.h"

namespace nezha::webhook {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Json = nlohmann::json;

k8s::Pod pod_of(const char* text) { return k8s::read_pod(Json::parse(text)).value(); }

Decision wanting(std::vector<WantedAlias> aliases) {
  Decision decision;
  decision.verdict = Verdict::kInject;
  decision.rules = {"r"};
  decision.aliases = std::move(aliases);
  return decision;
}

WantedAlias alias(const char* ip, std::initializer_list<const char*> hosts) {
  WantedAlias out{IpAddress(ip), {}};
  for (const char* host : hosts) out.hosts.emplace_back(host);
  return out;
}

std::vector<std::string> paths(const char* pod, const Decision& decision) {
  const auto view = pod_of(pod);
  std::vector<std::string> out;
  for (const auto& op : to_patch(view, mutate(view, decision).list)) out.push_back(op.path);
  return out;
}

TEST(Mutate, DoesNothingUnlessTheVerdictIsToInject) {
  for (const auto verdict : {Verdict::kNotOptedIn, Verdict::kOptedOut, Verdict::kMirrorPod, Verdict::kNoRule,
                             Verdict::kUnknownRule, Verdict::kCacheUnknown}) {
    auto decision = wanting({alias("10.0.0.1", {"a.org"})});
    decision.verdict = verdict;
    EXPECT_THAT(mutate(pod_of(R"({"spec":{}})"), decision).list, IsEmpty()) << to_string(verdict);
  }
}

TEST(Mutate, CreatesAbsentParentsInOneOperationEach) {
  const auto decision = wanting({alias("10.0.0.1", {"a.org"}), alias("fd00::1", {"a.org"})});
  EXPECT_THAT(paths(R"({"spec":{}})", decision), ElementsAre("/metadata", "/spec/hostAliases"));
  EXPECT_THAT(paths(R"({"metadata":{},"spec":{"hostAliases":null}})", decision),
              ElementsAre("/metadata/annotations", "/spec/hostAliases"));
}

TEST(Mutate, EscapesTheKeyOfTheAnnotation) {
  EXPECT_THAT(
      paths(R"({"metadata":{"annotations":{}},"spec":{"hostAliases":[]}})", wanting({alias("10.0.0.1", {"a.org"})})),
      ElementsAre("/metadata/annotations/nezha.io~1status", "/spec/hostAliases/-"));
}

TEST(Mutate, AppendsNamesInTheirOrder) {
  const auto view =
      pod_of(R"({"metadata":{},"spec":{"hostAliases":[{"ip":"1.1.1.1"},{"ip":"10.0.0.1","hostnames":["x"]}]}})");
  const auto ops = to_patch(view, mutate(view, wanting({alias("10.0.0.1", {"z.org", "a.org", "m.org"})})).list);
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_EQ(ops[1], (k8s::PatchOp{"/spec/hostAliases/1/hostnames/-", "\"z.org\""}));
  EXPECT_EQ(ops[2], (k8s::PatchOp{"/spec/hostAliases/1/hostnames/-", "\"a.org\""}));
  EXPECT_EQ(ops[3], (k8s::PatchOp{"/spec/hostAliases/1/hostnames/-", "\"m.org\""}));
}

TEST(Mutate, TakesAnotherSpellingOfTheIpForTheSameItem) {
  EXPECT_THAT(paths(R"({"metadata":{},"spec":{"hostAliases":[{"ip":"FD00:0::1","hostnames":[]}]}})",
                    wanting({alias("fd00::1", {"a.org"})})),
              ElementsAre("/metadata/annotations", "/spec/hostAliases/0/hostnames/-"));
}

TEST(Mutate, NamesThatThePodSpellsInUpperCaseAreThere) {
  EXPECT_THAT(paths(R"({"metadata":{},"spec":{"hostAliases":[{"ip":"10.0.0.1","hostnames":["A.org"]}]}})",
                    wanting({alias("10.0.0.1", {"a.org"})})),
              ElementsAre("/metadata/annotations"));
}

TEST(Prove, RefusesAPatchThatDoesNotFit) {
  const Json pod = Json::parse(R"({"spec":{}})");
  EXPECT_TRUE(prove(pod, {{"/spec/hostAliases", "[]"}}));
  EXPECT_FALSE(prove(pod, {{"/spec/hostAliases/-", "{}"}}));
  EXPECT_FALSE(prove(pod, {{"/metadata/annotations/x", "\"y\""}}));
}

TEST(Prove, RefusesAPatchThatLeavesNoReadablePod) {
  EXPECT_FALSE(prove(Json::parse(R"({"spec":{}})"), {{"/spec/hostAliases", "\"text\""}}));
}

}  // namespace
}  // namespace nezha::webhook
