// admit(): whole reviews, bytes in, bytes out.
#include "webhook/admit.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "test/support/policies.h"
#include "test/support/rfc6902.h"

namespace nezha::webhook {
namespace {

using test::make_pod;
using test::make_review;
using testing::HasSubstr;
using Json = nlohmann::json;

const Policy& policy() {
  static const Policy value = test::make_policy({{"default", {"a.example.org", "b.example.org"}, {}}}, {"10.0.0.1"});
  return value;
}

std::string decode_base64(const std::string& text) {
  static const std::string kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0, count = 0;
  for (const char c : text) {
    const auto value = kAlphabet.find(c);
    if (value == std::string::npos) break;
    bits = bits << 6 | static_cast<unsigned>(value);
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8) & 0xFF);
  }
  return out;
}

Json response_of(const Answer& answer) {
  EXPECT_EQ(answer.http_status, 200);
  const Json review = Json::parse(answer.body);
  EXPECT_EQ(review["apiVersion"], "admission.k8s.io/v1");
  EXPECT_EQ(review["kind"], "AdmissionReview");
  EXPECT_EQ(review["response"]["allowed"], true);
  return review["response"];
}

TEST(Admit, NotesANamespaceWithoutABundleUnlessItIsADryRun) {
  auto untrusted = policy();
  auto settings = *untrusted.settings;
  for (auto& upstream : settings.upstreams) upstream.tls = config::TlsMode::kIntercept;
  untrusted.settings = std::make_shared<const config::Settings>(settings);
  auto review = make_review(make_pod());
  EXPECT_TRUE(admit(Entry::kPod, review.dump(), untrusted).untrusted);
  EXPECT_FALSE(admit(Entry::kPod, review.dump(), policy()).untrusted) << "nothing is to be intercepted";
  review["request"]["dryRun"] = true;
  EXPECT_FALSE(admit(Entry::kPod, review.dump(), untrusted).untrusted);
  review["request"]["dryRun"] = false;
  untrusted.trust_everywhere = true;
  EXPECT_FALSE(admit(Entry::kPod, review.dump(), untrusted).untrusted);
}

TEST(Admit, AnswersWithThePatchOnceInBase64) {
  const auto review = make_review(make_pod());
  const auto response = response_of(admit(Entry::kPod, review.dump(), policy()));
  EXPECT_EQ(response["uid"], review["request"]["uid"]);
  EXPECT_EQ(response["patchType"], "JSONPatch");
  const Json patch = Json::parse(decode_base64(response["patch"]));
  const Json pod = test::apply_rfc6902(make_pod(), patch);
  EXPECT_EQ(pod["spec"]["hostAliases"],
            Json::parse(R"([{"ip":"10.0.0.1","hostnames":["a.example.org","b.example.org"]}])"));
  const Json status = Json::parse(pod["metadata"]["annotations"]["nezha.io/status"].get<std::string>());
  EXPECT_EQ(
      status,
      Json::parse(R"({"rule":"default","mode":"central","hosts":["a.example.org","b.example.org"],"reasons":[]})"));
  EXPECT_FALSE(response.contains("warnings"));
}

TEST(Admit, LeavesOutPatchAndTypeWhenThereIsNothingToDo) {
  auto pod = make_pod();
  pod["metadata"]["labels"]["nezha.io/inject"] = "false";
  const auto response = response_of(admit(Entry::kPod, make_review(pod).dump(), policy()));
  EXPECT_FALSE(response.contains("patch"));
  EXPECT_FALSE(response.contains("patchType"));
}

TEST(Admit, DryRunIsAnsweredLikeTheRealThing) {
  auto review = make_review(make_pod());
  const auto real = admit(Entry::kPod, review.dump(), policy()).body;
  review["request"]["dryRun"] = true;
  EXPECT_EQ(admit(Entry::kPod, review.dump(), policy()).body, real);
}

TEST(Admit, NamespaceIsTheRequestsNotThePods) {
  auto with_own = policy();
  config::InjectionRule own;
  own.name = RuleName("own");
  own.selector.match_labels = {{"nezha.io/inject", "true"}};
  own.upstreams = {UpstreamName("default")};
  with_own.delegated[Namespace("team")] = {own};
  auto pod = make_pod();
  pod["metadata"]["namespace"] = "elsewhere";
  EXPECT_EQ(admit(Entry::kPod, make_review(pod, "team").dump(), with_own).rules, "default,team/own");
  EXPECT_EQ(admit(Entry::kPod, make_review(pod, "elsewhere").dump(), with_own).rules, "default");
}

TEST(Admit, OtherRequestsThanTheCreationOfPodsPassUnchanged) {
  const std::pair<const char*, const char*> changes[] = {{"/request/operation", "UPDATE"},
                                                         {"/request/operation", "DELETE"},
                                                         {"/request/resource/resource", "deployments"},
                                                         {"/request/resource/group", "apps"},
                                                         {"/request/subResource", "ephemeralcontainers"}};
  for (const auto& [pointer, value] : changes) {
    auto review = make_review(make_pod());
    review[Json::json_pointer(pointer)] = value;
    const auto answer = admit(Entry::kPod, review.dump(), policy());
    EXPECT_EQ(answer.result, "not-a-pod") << pointer;
    EXPECT_FALSE(response_of(answer).contains("patch")) << pointer;
  }
}

TEST(Admit, AnUnreadablePodIsAdmittedUnchangedWithAWarning) {
  for (const char* pod : {R"({"spec":null})", R"([])", "null", R"({"spec":{"hostAliases":{}}})",
                          R"({"metadata":{"labels":{"a":1}},"spec":{}})", R"({"spec":{"hostNetwork":"yes"}})"}) {
    const auto answer = admit(Entry::kNamespace, make_review(Json::parse(pod)).dump(), policy());
    const auto response = response_of(answer);
    EXPECT_EQ(answer.result, "error") << pod;
    EXPECT_FALSE(response.contains("patch")) << pod;
    EXPECT_THAT(response["warnings"][0].get<std::string>(), HasSubstr("left as it is")) << pod;
  }
}

struct MalformedCase {
  const char* name;
  const char* body;
  const char* message;
};
class Malformed : public testing::TestWithParam<MalformedCase> {};
TEST_P(Malformed, IsABadRequestThatSaysWhatIsWrong) {
  const auto answer = admit(Entry::kPod, GetParam().body, policy());
  EXPECT_EQ(answer.http_status, 400);
  EXPECT_EQ(answer.result, "malformed");
  EXPECT_THAT(Json::parse(answer.body)["message"].get<std::string>(), HasSubstr(GetParam().message));
}
INSTANTIATE_TEST_SUITE_P(
    Cases, Malformed,
    testing::Values(
        MalformedCase{"empty", "", "not JSON"},
        MalformedCase{"cut", R"({"apiVersion":"admission.k8s.io/v1")", "not JSON"},
        MalformedCase{"not_an_object", "[]", "not a JSON object"},
        MalformedCase{"other_kind", R"({"apiVersion":"v1","kind":"Pod"})", "only AdmissionReview"},
        MalformedCase{"old_version", R"({"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"})",
                      "admissionReviewVersions: [v1]"},
        MalformedCase{"no_request", R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})",
                      "request is not"},
        MalformedCase{"no_uid", R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{}})", "uid"},
        MalformedCase{"uid_number",
                      R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":1}})",
                      "request.uid is not a string"},
        MalformedCase{"no_resource",
                      R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1"}})",
                      "request.resource"},
        MalformedCase{"bad_utf8", "{\"apiVersion\":\"\xff\"}", "not JSON"}),
    [](const auto& c) { return c.param.name; });

TEST(Admit, EveryPrefixOfAReviewIsMalformedNotACrash) {
  const std::string body = make_review(make_pod()).dump();
  for (size_t length = 0; length < body.size(); ++length)
    EXPECT_EQ(admit(Entry::kPod, std::string_view(body).substr(0, length), policy()).http_status, 400) << length;
}

}  // namespace
}  // namespace nezha::webhook
