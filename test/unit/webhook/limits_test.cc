// What is large, deep or at its limit.
#include "nezha/base/limits.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "test/support/policies.h"
#include "test/support/rfc6902.h"
#include "webhook/admit.h"

namespace nezha::webhook {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;

std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Limits, NestingIsRefusedAboveTheLimitOnly) {
  auto review = test::make_review(test::make_pod());
  review["request"]["object"]["spec"]["deep"] = "@";
  const auto with_depth = [&](size_t depth) {  // of the whole document: the value stands in four levels
    std::string body = review.dump();
    body.replace(body.find("\"@\""), 3, nested(depth - 4));
    return admit(Entry::kPod, body, Policy{}).http_status;
  };
  EXPECT_EQ(with_depth(limits::kReviewNestingMax), 200);
  EXPECT_EQ(with_depth(limits::kReviewNestingMax + 1), 400);
  EXPECT_EQ(with_depth(100'000), 400);
}

TEST(Limits, AnnotationsOfThePodLeaveNoRoomForTheStatus) {
  const auto policy = test::make_policy({{"default", {"a.org"}, {}}}, {"10.0.0.1"});
  auto pod = test::make_pod();
  pod["metadata"]["annotations"] = {{"k", std::string(limits::kAnnotationsBytesMax - 1, 'x')}};
  const auto full = change_pod(Entry::kPod, Namespace("team"), pod, policy);
  EXPECT_THAT(full.warnings, testing::ElementsAre(HasSubstr("no room for the annotation nezha.io/status")));
  EXPECT_EQ(full.patch.size(), 1u);  // the aliases alone

  pod["metadata"]["annotations"] = {{"k", std::string(limits::kAnnotationsBytesMax - 500, 'x')}};
  EXPECT_EQ(change_pod(Entry::kPod, Namespace("team"), pod, policy).patch.size(), 2u);
}

TEST(Limits, ALongListOfHostsIsCountedNotListedInTheStatus) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 1000; ++i) hosts.push_back("h" + std::to_string(i) + ".example.org");
  const auto policy = test::make_policy({{"default", hosts, {}}}, {"10.0.0.1"});
  const auto change = change_pod(Entry::kPod, Namespace("team"), test::make_pod(), policy);
  const Json pod = test::apply_rfc6902(test::make_pod(), Json::parse(k8s::write_patch(change.patch)));
  EXPECT_EQ(pod["spec"]["hostAliases"][0]["hostnames"].size(), 1000u);
  const Json status = Json::parse(pod["metadata"]["annotations"]["nezha.io/status"].get<std::string>());
  EXPECT_EQ(status["hosts"].size(), limits::kStatusHostsMax);
  EXPECT_EQ(status["hostsMore"], 1000 - limits::kStatusHostsMax);
  EXPECT_TRUE(change_pod(Entry::kPod, Namespace("team"), pod, policy).patch.empty());
}

TEST(Limits, ALineTooLongForMuslIsReportedFromTheFirstByteAbove) {
  const std::string ip = "10.0.0.1";
  const auto reasons_for = [&](size_t line_bytes) {  // "ip\thost\thost"
    std::vector<std::string> hosts;
    size_t left = line_bytes - ip.size() - 1;
    for (int i = 0; left > 0; ++i) {
      const size_t bytes = left > 120 ? 60 : left;  // with the separator
      std::string host = "h" + std::to_string(i) + ".";
      hosts.push_back(host + std::string(bytes - 1 - host.size(), 'x'));
      left -= bytes;
    }
    const auto policy = test::make_policy({{"default", hosts, {}}}, {ip});
    return change_pod(Entry::kPod, Namespace("team"), test::make_pod(), policy).decision.reasons;
  };
  EXPECT_THAT(reasons_for(limits::kHostsLineBytesMusl), testing::IsEmpty());
  EXPECT_THAT(reasons_for(limits::kHostsLineBytesMusl + 1), testing::ElementsAre(HasSubstr("musl")));
}

TEST(Limits, WarningsStayWithinWhatTheApiServerShows) {
  auto pod = test::make_pod();
  auto& containers = pod["spec"]["containers"];
  for (int i = 0; i < 50; ++i)
    containers.push_back(
        {{"name", std::string(300, 'c')}, {"volumeMounts", {{{"name", "v"}, {"mountPath", "/etc/hosts"}}}}});
  const auto policy = test::make_policy({{"default", {"a.org"}, {}}}, {"10.0.0.1"});
  const auto change = change_pod(Entry::kPod, Namespace("team"), pod, policy);
  size_t bytes = 0;
  for (const auto& warning : change.warnings) {
    EXPECT_LE(warning.size(), 256u);
    bytes += warning.size();
  }
  EXPECT_EQ(change.warnings.size(), 10u);
  EXPECT_LE(bytes, 4096u);
  const Json result = test::apply_rfc6902(pod, Json::parse(k8s::write_patch(change.patch)));
  const Json status = Json::parse(result["metadata"]["annotations"]["nezha.io/status"].get<std::string>());
  EXPECT_LE(status["reasons"].size(), limits::kStatusReasonsMax);
}

}  // namespace
}  // namespace nezha::webhook
