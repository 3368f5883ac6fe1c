// The API client against the fake server: values in and out, what each failure tells the caller, tokens, limits.
#include "nezha/k8s/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/support/fake_api_server.h"
#include "test/unit/k8s_client/temporary_file.h"

namespace nezha::k8s {
namespace {

using ::testing::HasSubstr;

const Resource kConfigMaps{"", "v1", "configmaps"};
const Namespace kSpace("team-a");
constexpr const char* kPath = "/api/v1/namespaces/team-a/configmaps/one";

TEST(ResourcePath, CoreAndGroupsNamespacedAndNot) {
  EXPECT_EQ(kConfigMaps.path(kSpace), "/api/v1/namespaces/team-a/configmaps");
  EXPECT_EQ(kConfigMaps.path(Namespace()), "/api/v1/configmaps");
  EXPECT_EQ((Resource{"apps", "v1", "deployments"}.path(kSpace, "x")), "/apis/apps/v1/namespaces/team-a/deployments/x");
  EXPECT_EQ(kConfigMaps.path(kSpace, "a/b c"), "/api/v1/namespaces/team-a/configmaps/a%2Fb%20c");
}

TEST(ApiClient, CreatesReadsReplacesAndPatches) {
  test::FakeApiServer server;
  ApiClient client(server.address());
  const auto created = client.create(kConfigMaps, kSpace, R"({"metadata":{"name":"one"},"data":{"k":"1"}})");
  ASSERT_TRUE(created) << created.error().message;
  ASSERT_TRUE(created.value());
  EXPECT_THAT(*created.value(), HasSubstr("\"resourceVersion\""));
  ASSERT_TRUE(client.update(kConfigMaps, kSpace, "one", R"({"metadata":{"name":"one"},"data":{"k":"2"}})"));
  ASSERT_TRUE(client.patch(kConfigMaps, kSpace, "one", PatchType::kMerge, R"({"data":{"k":"3"}})"));
  const auto read = client.get(kConfigMaps, kSpace, "one");
  ASSERT_TRUE(read);
  EXPECT_THAT(read.value(), HasSubstr(R"("k":"3")"));
  EXPECT_EQ(server.requests()[2].content_type, "application/merge-patch+json");
}

TEST(ApiClient, RemovesOnlyTheVersionItWasTold) {
  test::FakeApiServer server;
  ApiClient client(server.address());
  const std::string version = server.put(kPath, R"({"data":{"k":"1"}})");
  const std::string newer = server.put(kPath, R"({"data":{"k":"2"}})");
  const auto refused = client.remove(kConfigMaps, kSpace, "one", version);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().remedy, Remedy::kRetryLater);
  EXPECT_TRUE(server.get(kPath));
  EXPECT_TRUE(client.remove(kConfigMaps, kSpace, "one", newer));
  EXPECT_FALSE(server.get(kPath));
  EXPECT_TRUE(client.remove(kConfigMaps, kSpace, "one", newer)) << "it is gone already";
}

TEST(ApiClient, ListsInPages) {
  test::FakeApiServer server;
  for (const char* name : {"one", "two", "three"}) {
    server.put(std::string("/api/v1/namespaces/team-a/configmaps/") + name, R"({"data":{}})");
  }
  ApiClient client(server.address());
  const auto first = client.list({kConfigMaps, kSpace, "", ""}, 2);
  ASSERT_TRUE(first);
  EXPECT_THAT(first.value(), HasSubstr(R"("continue":"2")"));
  const auto second = client.list({kConfigMaps, kSpace, "", ""}, 2, "2");
  ASSERT_TRUE(second);
  EXPECT_THAT(second.value(), HasSubstr("two"));
}

TEST(ApiClient, SelectorsArePercentEncoded) {
  test::FakeApiServer server;
  ApiClient client(server.address());
  ASSERT_TRUE(client.list({kConfigMaps, Namespace(), "nezha.io/config=true", "metadata.name=a"}, 10));
  EXPECT_EQ(server.requests()[0].target,
            "/api/v1/configmaps?labelSelector=nezha.io%2Fconfig%3Dtrue&fieldSelector=metadata.name%3Da&limit=10");
}

struct StatusCase {
  int status;
  Remedy remedy;
};
class ApiClientStatus : public ::testing::TestWithParam<StatusCase> {};

TEST_P(ApiClientStatus, TellsTheCallerWhatToDo) {
  test::FakeApiServer server;
  server.set_faults([](const test::SeenRequest&) {
    return test::Fault{.status = GetParam().status, .body = R"({"kind":"Status","message":"the reason"})"};
  });
  ApiClient client(server.address());
  const auto answer = client.get(kConfigMaps, kSpace, "one");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().remedy, GetParam().remedy);
  EXPECT_THAT(answer.error().message, HasSubstr("the reason"));
  EXPECT_THAT(answer.error().message, HasSubstr(std::string("GET ") + kPath));
}

INSTANTIATE_TEST_SUITE_P(All, ApiClientStatus,
                         ::testing::Values(StatusCase{400, Remedy::kFixInput}, StatusCase{401, Remedy::kRetryLater},
                                           StatusCase{403, Remedy::kGiveUp}, StatusCase{404, Remedy::kAbsent},
                                           StatusCase{409, Remedy::kRetryLater}, StatusCase{410, Remedy::kRetryLater},
                                           StatusCase{422, Remedy::kFixInput}, StatusCase{429, Remedy::kRetryLater},
                                           StatusCase{500, Remedy::kRetryLater}, StatusCase{503, Remedy::kRetryLater}));

TEST(ApiClient, AbsentConflictAndPrecondition) {
  test::FakeApiServer server;
  server.put(kPath, R"({"data":{}})");
  ApiClient client(server.address());
  EXPECT_EQ(client.get(kConfigMaps, kSpace, "other").error().remedy, Remedy::kAbsent);
  const auto created = client.create(kConfigMaps, kSpace, R"({"metadata":{"name":"one"}})");
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_FALSE(created.value()) << "it exists already";
  EXPECT_EQ(
      client.update(kConfigMaps, kSpace, "one", R"({"metadata":{"name":"one","resourceVersion":"1"}})").error().remedy,
      Remedy::kRetryLater);
}

TEST(ApiClient, NoServerIsRetriedLater) {
  ApiServer nowhere{.url = "http://127.0.0.1:1", .token_file = {}, .ca_file = {}};
  const auto answer = ApiClient(nowhere).get(kConfigMaps, kSpace, "one");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().remedy, Remedy::kRetryLater);
}

TEST(ApiClient, BadUrlIsForThePersonToFix) {
  for (const char* url : {"127.0.0.1:80", "https://", "http://host:99999", "http://host:0", "http://host/path"}) {
    const auto answer = ApiClient({.url = url, .token_file = {}, .ca_file = {}}).get(kConfigMaps, kSpace, "one");
    ASSERT_FALSE(answer) << url;
    EXPECT_EQ(answer.error().remedy, Remedy::kFixInput) << url;
  }
}

TEST(ApiClient, AnswerCutShortIsAnError) {
  test::FakeApiServer server;
  server.set_faults([](const test::SeenRequest&) {
    return test::Fault{.status = 200, .body = R"({"metadata":{}})", .after = false, .cut = true};
  });
  ApiClient client(server.address());
  const auto answer = client.get(kConfigMaps, kSpace, "one");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().remedy, Remedy::kRetryLater);
}

TEST(ApiClient, AnswerOverTheLimitIsAnError) {
  test::FakeApiServer server;
  server.put(kPath, R"({"data":{"k":")" + std::string(5000, 'x') + R"("}})");
  ApiClient client(server.address(), {.response_bytes_max = 4096});
  const auto answer = client.get(kConfigMaps, kSpace, "one");
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("larger than the limit"));
  EXPECT_TRUE(client.list({kConfigMaps, Namespace("empty"), "", ""}, 10)) << "the client stays usable";
}

TEST(ApiClient, TokenIsReadAgainForEveryRequest) {
  test::FakeApiServer server;
  const test::TemporaryFile token("first\n");
  ApiServer address = server.address();
  address.token_file = token.path();
  ApiClient client(address);
  (void)client.get(kConfigMaps, kSpace, "one");
  token.write("second");
  (void)client.get(kConfigMaps, kSpace, "one");
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(requests[0].authorization, "Bearer first");
  EXPECT_EQ(requests[1].authorization, "Bearer second");
}

TEST(ApiClient, MissingTokenFileNamesIt) {
  test::FakeApiServer server;
  ApiServer address = server.address();
  address.token_file = "/nonexistent/token";
  const auto answer = ApiClient(address).get(kConfigMaps, kSpace, "one");
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("/nonexistent/token"));
  EXPECT_TRUE(server.requests().empty());
}

TEST(ApiClient, StopCutsAPendingRequest) {
  test::FakeApiServer server;
  ApiClient client(server.address());
  std::atomic<bool> asked{false}, ended{false};
  server.set_faults([&](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (request.path != "/api/v1/namespaces/team-a/configmaps/slow") return std::nullopt;
    asked = true;
    while (!ended) std::this_thread::yield();  // answers only once the client has given up
    return std::nullopt;
  });
  Result<std::string> answer = std::string();
  std::thread caller([&] {
    answer = client.get(kConfigMaps, kSpace, "slow");
    ended = true;
  });
  while (!asked) std::this_thread::yield();
  client.stop();
  caller.join();
  ASSERT_FALSE(answer);
  EXPECT_THAT(answer.error().message, HasSubstr("stopped"));
  EXPECT_FALSE(client.get(kConfigMaps, kSpace, "one")) << "later requests fail at once";
}

}  // namespace
}  // namespace nezha::k8s
