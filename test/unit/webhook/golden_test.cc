// Pairs under test/golden/inject/: pod.yaml (or pod.json) -> patch.json and outcome.txt (verdict, warnings).
// case.yaml may say: entry, namespace, cacheAddresses, config (a file), delegated (rules by namespace), trusted (hosts
// that the namespace has a bundle for).
// For each pair the patch must also hold what every patch of ours promises, checked by code that is not ours.
#include "test/support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/manifest.h"
#include "nezha/k8s/json_patch.h"
#include "test/support/extension.h"
#include "test/support/golden_case.h"
#include "test/support/rfc6902.h"
#include "webhook/admit.h"

namespace nezha::test {
namespace {

using Json = nlohmann::json;

class GoldenInject : public testing::TestWithParam<std::filesystem::path> {
 protected:
  void SetUp() override {
    case_ = load_golden_case(GetParam());
    change_ = webhook::change_pod(case_.entry, case_.name_space, case_.pod, case_.policy);
    patch_ = Json::parse(k8s::write_patch(change_.patch));
  }
  GoldenCase case_;
  webhook::Change change_;
  Json patch_;
};

TEST_P(GoldenInject, PatchAndOutcomeAreAsRecorded) {
  expect_golden(GetParam() / "patch.json",
                nlohmann::ordered_json::parse(k8s::write_patch(change_.patch)).dump(2) + "\n");
  std::string outcome = change_.failed ? "failed" : webhook::to_string(change_.decision.verdict);
  for (const auto& warning : change_.warnings) outcome += "\nwarning: " + warning;
  expect_golden(GetParam() / "outcome.txt", outcome + "\n");
}

TEST_P(GoldenInject, PatchAppliesByTheRfcAndAsTheLibraryDoesIt) {
  EXPECT_EQ(apply_rfc6902(case_.pod, patch_), case_.pod.patch(patch_));
}

TEST_P(GoldenInject, ResultMinusOursIsTheInput) {
  EXPECT_TRUE(is_extension(case_.pod, apply_rfc6902(case_.pod, patch_)));
}

TEST_P(GoldenInject, SecondRunAddsNothing) {
  const Json once = apply_rfc6902(case_.pod, patch_);
  const auto again = webhook::change_pod(case_.entry, case_.name_space, once, case_.policy);
  EXPECT_TRUE(again.patch.empty()) << k8s::write_patch(again.patch);
}

size_t repeated_ips(const Json& pod) {
  std::map<std::string, int> count;
  size_t repeats = 0;
  const Json spec = pod.value("spec", Json::object());
  if (!spec.contains("hostAliases") || !spec["hostAliases"].is_array()) return 0;
  for (const auto& item : spec["hostAliases"]) repeats += count[item.value("ip", "")]++ > 0;
  return repeats;
}

TEST_P(GoldenInject, NoIpStandsInTwoItemsUnlessThePodCameSo) {
  EXPECT_EQ(repeated_ips(apply_rfc6902(case_.pod, patch_)), repeated_ips(case_.pod));
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenInject, testing::ValuesIn(golden_cases()), [](const auto& c) {
  std::string name = c.param.filename().string();
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

TEST(GoldenCases, AreFound) { EXPECT_GE(golden_cases().size(), 40u); }

}  // namespace
}  // namespace nezha::test
