// The controller as a whole against the fake API server: from empty cluster to ready, and what it follows.
#include "webhook/controller/controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "nezha/pki/certificates.h"
#include "test/support/temporary_directory.h"
#include "test/unit/webhook_controller/registration_fixture.h"
#include "test/unit/webhook_controller/replica.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr const char* kConfig = "/api/v1/namespaces/nezha-system/configmaps/nezha-config";
constexpr const char* kAncestor = "/api/v1/namespaces/nezha-system/configmaps/hostaliases-config";
constexpr const char* kService = "/api/v1/namespaces/nezha-system/services/nezha-cache";
constexpr const char* kInterceptService = "/api/v1/namespaces/nezha-system/services/nezha-cache-tls";
constexpr const char* kDelegated = "/api/v1/namespaces/team-a/configmaps/rules";

std::string upstreams(const std::string& host) {
  return "upstreams: [{name: data, hosts: ['" + host + "'], protocol: http}]\n" +
         "delegation: [{namespaces: [team-a], upstreams: [data]}]\n";
}

// One webhook replica without its admission server.
class Instance {
 public:
  Instance(const test::FakeApiServer& server, const ControllerSettings& settings)
      : controller_(settings, server.address(), policies_, certificate_, readiness_, clock_, *metrics_, *log_) {
    controller_.start();
  }
  std::shared_ptr<const Policy> policy() const { return policies_.current(); }
  const Readiness& readiness() const { return readiness_; }
  std::string certificate() const {
    const auto pair = certificate_.current();
    return pair ? pair->certificate_pem : "";
  }
  std::string metrics() const { return metrics_->expose(); }
  void note_untrusted(const std::string& name_space) { controller_.note_untrusted(Namespace(name_space)); }

 private:
  SystemClock clock_;
  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();
  PolicyStore policies_;
  LiveCertificate certificate_;
  Readiness readiness_;
  Controller controller_;
};

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() {
    settings_.tls.release = Namespace("nezha-system");
    settings_.watch.backoff_first = milliseconds(1);
    settings_.watch.backoff_max = milliseconds(4);
    settings_.retry_first = milliseconds(1);
    settings_.retry_max = milliseconds(10);
    settings_.soon = milliseconds(20);
    settings_.trust.enabled = false;
  }

  void SetUp() override {
    server_.put(test::kSecretPath, R"({"type":"Opaque"})");
    server_.put(test::kRegistrationPath, test::kRegistration);
    server_.put(kService, R"({"spec":{"clusterIPs":["10.96.0.9"]}})");
  }

  void put_config(const std::string& path, const std::string& text, const char* key = "config.yaml") {
    server_.put(path, Json{{"metadata", {{"labels", {{"nezha.io/config", "true"}}}}}, {"data", {{key, text}}}}.dump());
  }

  Instance& start() {
    instance_ = std::make_unique<Instance>(server_, settings_);
    return *instance_;
  }

  bool await_ready(const Instance& instance) {
    const bool ready = server_.wait_until([&] { return instance.readiness().ready(); });
    if (!ready) ADD_FAILURE() << instance.readiness().text();
    return ready;
  }
  bool await_host(const Instance& instance, const std::string& host) {
    return server_.wait_until([&] { return instance.policy()->settings->find_host(HostName(host)) != nullptr; });
  }
  std::vector<Json> events(const std::string& name_space) const {
    std::vector<Json> out;
    for (const auto& path : server_.paths_under("/api/v1/namespaces/" + name_space + "/events/")) {
      out.push_back(Json::parse(*server_.get(path)));
    }
    return out;
  }

  void allow_interception() {
    settings_.trust.enabled = true;
    settings_.trust.release = settings_.tls.release;
    settings_.trust.roots_file = directory_.path() + "/roots.pem";
    const auto now = std::chrono::system_clock::now();
    std::ofstream(settings_.trust.roots_file)
        << pki::make_ca("public", {now, now + std::chrono::hours(1)}).value().certificate_pem;
    server_.put(kInterceptService, R"({"spec":{"clusterIPs":["10.96.0.10"]}})");
    put_config(kConfig, "upstreams: [{name: data, hosts: [a.org], tls: intercept}]\n");
  }
  bool await_trust(const Instance& instance, const std::string& name_space) {
    return server_.wait_until([&] {
      const auto policy = instance.policy();
      const auto trusted = policy->trusted.find(Namespace(name_space));
      return trusted != policy->trusted.end() && trusted->second.central.contains(HostName("a.org"));
    });
  }

  ControllerSettings settings_;
  test::TemporaryDirectory directory_;
  test::FakeApiServer server_;
  std::unique_ptr<Instance> instance_;
};

TEST_F(ControllerTest, FromAnEmptyClusterToReady) {
  const Instance& instance = start();
  ASSERT_TRUE(await_ready(instance));
  EXPECT_EQ(instance.policy()->cache_addresses, std::vector<IpAddress>{IpAddress("10.96.0.9")});
  EXPECT_TRUE(test::trusted(instance.certificate(), test::stored_cas(server_), std::chrono::system_clock::now()));
  EXPECT_EQ(test::writes(server_), 2u) << "the Secret and the registration";
}

TEST_F(ControllerTest, NotReadyUntilTheWholeConfigurationIsListed) {
  server_.set_faults([](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (request.target.find("services") == std::string::npos) return std::nullopt;
    return test::Fault{.status = 403, .body = R"({"message":"services is forbidden"})"};
  });
  const Instance& instance = start();
  ASSERT_TRUE(
      server_.wait_until([&] { return !test::stored_cas(server_).empty() && !instance.certificate().empty(); }));
  EXPECT_FALSE(instance.readiness().ready());
  ASSERT_TRUE(server_.wait_until([&] {
    return instance.readiness().text().find("configuration: not listed yet: Service nezha-system/nezha-cache\n") !=
           std::string::npos;
  })) << instance.readiness().text();
  server_.set_faults(nullptr);
  EXPECT_TRUE(await_ready(instance));
}

TEST_F(ControllerTest, FollowsConfigMapsAndTheService) {
  put_config(kConfig, upstreams("one.example.com"));
  const Instance& instance = start();
  ASSERT_TRUE(await_host(instance, "one.example.com"));
  put_config(kConfig, upstreams("two.example.com"));
  ASSERT_TRUE(await_host(instance, "two.example.com"));
  put_config(kAncestor, "- {name: a, app: web, label: web, hostAliases: [{ip: 10.0.0.1, hostnames: [a.example.com]}]}",
             "config");
  ASSERT_TRUE(server_.wait_until([&] { return instance.policy()->ancestor.size() == 1; }));
  put_config(kDelegated, "injection: [{name: mine, selector: {matchLabels: {app: train}}, upstreams: [data]}]");
  ASSERT_TRUE(server_.wait_until([&] { return instance.policy()->delegated.count(Namespace("team-a")) == 1; }));
  ASSERT_TRUE(server_.wait_until(
      [&] { return selector_entries(Json::parse(*server_.get(test::kRegistrationPath))).size() == 1; }));
  server_.put(kService, R"({"spec":{"clusterIPs":["10.96.0.77","fd00::77"]}})");
  const std::vector<IpAddress> moved{IpAddress("10.96.0.77"), IpAddress("fd00::77")};
  ASSERT_TRUE(server_.wait_until([&] { return instance.policy()->cache_addresses == moved; }));
  server_.remove(kService);
  ASSERT_TRUE(server_.wait_until([&] { return instance.policy()->cache_addresses.empty(); }));
  ASSERT_TRUE(await_ready(instance));
  EXPECT_THAT(instance.readiness().text(), HasSubstr("warn  cache: the Service nezha-cache does not exist"));
  server_.remove(kConfig);
  ASSERT_TRUE(server_.wait_until([&] { return instance.policy()->settings->upstreams.empty(); }));
}

TEST_F(ControllerTest, BadConfigKeepsTheLastGoodAndMakesOneEventPerVersion) {
  put_config(kConfig, upstreams("one.example.com"));
  const Instance& instance = start();
  ASSERT_TRUE(await_ready(instance));
  ASSERT_TRUE(await_host(instance, "one.example.com"));
  put_config(kConfig, upstreams("*.example.com"));
  ASSERT_TRUE(server_.wait_until([&] { return events("nezha-system").size() == 1; }));
  const Json event = events("nezha-system")[0];
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "InvalidConfiguration");
  EXPECT_EQ(event["involvedObject"]["name"], "nezha-config");
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("nezha-config/config.yaml: upstreams[0].hosts[0]"));
  EXPECT_THAT(instance.metrics(), HasSubstr("nezha_webhook_config_invalid 1"));
  server_.forget_history();  // makes every watch list again: the same version is not told again
  server_.cut_watches();
  put_config(kConfig, upstreams("two.example.com"));
  ASSERT_TRUE(await_host(instance, "two.example.com"));
  ASSERT_TRUE(server_.wait_until([&] { return events("nezha-system").size() == 2; }));
  size_t normal = 0;
  for (const Json& each : events("nezha-system")) normal += each["type"] == "Normal" ? 1 : 0;
  EXPECT_EQ(normal, 1u);
  EXPECT_THAT(instance.metrics(), HasSubstr("nezha_webhook_config_invalid 0"));
  EXPECT_TRUE(instance.readiness().ready());
}

TEST_F(ControllerTest, EventOfADelegatedConfigMapIsInItsNamespace) {
  put_config(kConfig, upstreams("one.example.com"));
  put_config(kDelegated, "injection: [{name: mine, selector: {matchLabels: {app: x}}, upstreams: [other]}]");
  start();
  ASSERT_TRUE(server_.wait_until([&] { return events("team-a").size() == 1; }));
}

TEST_F(ControllerTest, DelegatedRulesWaitForTheAdminsConfiguration) {
  std::atomic<bool> admin_hidden{true};
  server_.set_faults([&](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (!admin_hidden || request.target.find("nezha-config") == std::string::npos) return std::nullopt;
    return test::Fault{.status = 503, .body = ""};
  });
  put_config(kConfig, upstreams("one.example.com"));
  put_config(kDelegated, "injection: [{name: mine, selector: {matchLabels: {app: x}}, upstreams: [data]}]");
  const Instance& instance = start();
  ASSERT_TRUE(server_.wait_until([&] { return server_.count("GET", "/api/v1/configmaps?") >= 2; }));
  ASSERT_TRUE(server_.wait_until([&] { return !instance.policy()->cache_addresses.empty(); }));
  admin_hidden = false;
  ASSERT_TRUE(server_.wait_until([&] { return instance.policy()->delegated.count(Namespace("team-a")) == 1; }));
  EXPECT_TRUE(events("team-a").empty());
}

TEST_F(ControllerTest, AdminConfigThatCarriesTheLabelIsNotReadAsDelegated) {
  put_config(kConfig, upstreams("one.example.com"));
  const Instance& instance = start();
  ASSERT_TRUE(await_ready(instance));
  EXPECT_TRUE(events("nezha-system").empty());
}

TEST_F(ControllerTest, DelegationOffListsNothingElsewhere) {
  settings_.delegation = false;
  put_config(kDelegated, "injection: []");
  const Instance& instance = start();
  ASSERT_TRUE(await_ready(instance));
  EXPECT_EQ(server_.count("GET", "/api/v1/configmaps"), 0u);
}

TEST_F(ControllerTest, PinnedAddressNeedsNoService) {
  settings_.cache_address = IpAddress("10.1.1.1");
  const Instance& instance = start();
  ASSERT_TRUE(await_ready(instance));
  EXPECT_EQ(instance.policy()->cache_addresses, std::vector<IpAddress>{IpAddress("10.1.1.1")});
  EXPECT_EQ(server_.count("GET", "services"), 0u);
}

TEST_F(ControllerTest, TwoReplicasAgreeAndRepairDrift) {
  const Instance& first = start();
  Instance second(server_, settings_);
  ASSERT_TRUE(await_ready(first));
  ASSERT_TRUE(await_ready(second));
  EXPECT_EQ(first.certificate(), second.certificate());
  server_.put(test::kRegistrationPath, test::kRegistration);
  EXPECT_TRUE(server_.wait_until(
      [&] { return test::trusted(first.certificate(), test::stored_cas(server_), std::chrono::system_clock::now()); }));
}

TEST_F(ControllerTest, NamespacesThatOptInAreTrustedOnceTheirBundleIsThere) {
  allow_interception();
  server_.put("/api/v1/namespaces/team-a", R"({"metadata":{"labels":{"nezha.io/inject":"true"}}})");
  Instance& instance = start();
  ASSERT_TRUE(await_ready(instance));
  EXPECT_TRUE(await_trust(instance, "team-a"));
  EXPECT_EQ(instance.policy()->intercept_addresses, std::vector<IpAddress>{IpAddress("10.96.0.10")});
  EXPECT_FALSE(instance.policy()->trusted.contains(Namespace("team-b")));
  instance.note_untrusted("team-b");
  EXPECT_TRUE(await_trust(instance, "team-b"));
  // Another replica learns it from the cluster.
  const Instance second(server_, settings_);
  EXPECT_TRUE(await_trust(second, "team-b"));
}

TEST_F(ControllerTest, InterceptionOffAsksForNothing) {
  settings_.trust.enabled = false;
  put_config(kConfig, "upstreams: [{name: data, hosts: [a.org], tls: intercept}]\n");
  const Instance& instance = start();
  ASSERT_TRUE(await_ready(instance));
  EXPECT_EQ(server_.count("GET", "nezha-cache-tls"), 0u);
  EXPECT_EQ(server_.count("GET", "trust"), 0u);
}

// A replica that starts with a configuration it cannot read knows no hosts, and takes nothing for unwanted.
TEST_F(ControllerTest, ABrokenConfigurationRemovesNothing) {
  allow_interception();
  settings_.trust.removal_grace = std::chrono::seconds(0);
  server_.put("/api/v1/namespaces/team-a", R"({"metadata":{"labels":{"nezha.io/inject":"true"}}})");
  ASSERT_TRUE(await_trust(start(), "team-a"));
  instance_.reset();
  put_config(kConfig, "upstreams: none\n");
  const std::string leaves = *server_.get("/api/v1/namespaces/nezha-system/secrets/nezha-cache-tls");
  const Instance& instance = start();
  ASSERT_TRUE(await_ready(instance));
  ASSERT_TRUE(server_.wait_until([&] { return !events("nezha-system").empty(); }));
  EXPECT_EQ(*server_.get("/api/v1/namespaces/nezha-system/secrets/nezha-cache-tls"), leaves);
}

TEST_F(ControllerTest, StopsWhileTheApiIsUnreachable) {
  server_.set_faults([](const test::SeenRequest&) { return test::Fault{.status = 500, .body = ""}; });
  const Instance& instance = start();
  ASSERT_TRUE(server_.wait_until([&] { return server_.requests().size() > 20; }));
  EXPECT_FALSE(instance.readiness().ready());
  instance_.reset();
}

}  // namespace
}  // namespace nezha::webhook
