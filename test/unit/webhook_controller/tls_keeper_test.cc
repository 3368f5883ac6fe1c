// TlsKeeper: the first start, races, drift, selector entries, lost and garbage Secrets, missing permissions.
#include "webhook/controller/tls_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nezha/pki/certificates.h"
#include "test/unit/webhook_controller/registration_fixture.h"
#include "test/unit/webhook_controller/replica.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;
using test::kRegistrationPath;
using test::kSecretPath;
using ::testing::HasSubstr;

class TlsKeeperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_.put(kSecretPath, R"({"type":"Opaque","metadata":{"labels":{"helm":"yes"}}})");
    server_.put(kRegistrationPath, test::kRegistration);
  }

  Json registration() const { return Json::parse(*server_.get(kRegistrationPath)); }
  Json secret() const { return Json::parse(*server_.get(kSecretPath)); }
  std::string first_ca() const { return *test::stored_cas(server_).begin(); }
  void expect_good(const test::Replica& replica) const {
    EXPECT_TRUE(replica.ready()) << replica.readiness();
    EXPECT_TRUE(test::trusted(replica.leaf(), test::stored_cas(server_), clock_.wall()));
  }

  test::FakeApiServer server_;
  test::ManualClock clock_;
};

TEST_F(TlsKeeperTest, FirstStartFillsTheSecretAndRegisters) {
  test::Replica replica(server_, clock_);
  EXPECT_FALSE(replica.ready());
  EXPECT_THAT(replica.readiness(), HasSubstr("certificate: none loaded yet"));
  EXPECT_EQ(replica.reconcile(), "");
  expect_good(replica);
  EXPECT_EQ(secret()["metadata"]["labels"]["helm"], "yes");
  EXPECT_EQ(registration()["metadata"]["labels"]["app.kubernetes.io/managed-by"], "Helm");
  EXPECT_EQ(test::writes(server_), 2u);
  EXPECT_THAT(replica.metrics(), HasSubstr("nezha_webhook_ca_bundle_matches 1"));
}

TEST_F(TlsKeeperTest, PassesWithoutAChangeWriteNothing) {
  test::Replica replica(server_, clock_);
  replica.reconcile();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(replica.reconcile(), "");
  EXPECT_EQ(test::writes(server_), 2u);
  EXPECT_FALSE(replica.soon_due());
}

TEST_F(TlsKeeperTest, MissingSecretIsCreated) {
  server_.remove(kSecretPath);
  test::Replica replica(server_, clock_);
  EXPECT_EQ(replica.reconcile(), "");
  expect_good(replica);
  EXPECT_EQ(secret()["type"], "Opaque");
}

// The second replica runs in full between the first one's read and its write.
void race(test::FakeApiServer& server, const test::ManualClock& clock, const char* method) {
  test::Replica first(server, clock), second(server, clock);
  bool raced = false;
  server.set_faults([&](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (raced || request.method != method || request.path.find("/secrets") == std::string::npos) return std::nullopt;
    raced = true;
    // The write of the first replica waits here; what the second one stores is what the server has then.
    return test::Fault{.status = 409, .body = R"({"message":"the object has been modified"})"};
  });
  EXPECT_NE(first.reconcile(), "");
  EXPECT_EQ(second.reconcile(), "");
  EXPECT_EQ(first.reconcile(), "");
  EXPECT_TRUE(raced);
  EXPECT_EQ(first.leaf(), second.leaf());
  EXPECT_TRUE(first.ready() && second.ready());
}

TEST_F(TlsKeeperTest, LoserOfTheRaceForAnEmptySecretLoadsTheWinners) { race(server_, clock_, "PUT"); }

TEST_F(TlsKeeperTest, LoserOfTheRaceForAMissingSecretLoadsTheWinners) {
  server_.remove(kSecretPath);
  race(server_, clock_, "POST");
}

TEST_F(TlsKeeperTest, RealPreconditionLetsOnlyOneFill) {
  // Both read the empty Secret: the second write must be refused by the server itself.
  k8s::ApiClient api(server_.address());
  const k8s::Resource secrets{"", "v1", "secrets"};
  const Namespace release("nezha-system");
  const std::string read = api.get(secrets, release, "nezha-webhook-tls").value();
  test::Replica replica(server_, clock_);
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_FALSE(api.update(secrets, release, "nezha-webhook-tls", read));
}

TEST_F(TlsKeeperTest, DriftOfTheBundleIsRepaired) {
  test::Replica replica(server_, clock_);
  replica.reconcile();
  Json drifted = registration();
  drifted["webhooks"][1]["clientConfig"].erase("caBundle");
  server_.put(kRegistrationPath, drifted.dump());
  EXPECT_EQ(replica.reconcile(), "");
  expect_good(replica);
}

TEST_F(TlsKeeperTest, ReinstalledRegistrationIsFilledAgain) {
  test::Replica replica(server_, clock_);
  replica.reconcile();
  server_.remove(kRegistrationPath);
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_FALSE(replica.ready());
  EXPECT_THAT(replica.readiness(), HasSubstr("MutatingWebhookConfiguration nezha does not exist"));
  EXPECT_TRUE(replica.soon_due());
  server_.put(kRegistrationPath, test::kRegistration);
  EXPECT_EQ(replica.reconcile(), "");
  expect_good(replica);
}

TEST_F(TlsKeeperTest, NotReadyWhileTheRegistrationCannotBeWritten) {
  server_.set_faults([](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (request.method != "PUT" || request.path != kRegistrationPath) return std::nullopt;
    return test::Fault{.status = 403, .body = R"({"message":"cannot update resource"})"};
  });
  test::Replica replica(server_, clock_);
  EXPECT_THAT(replica.reconcile(), HasSubstr("cannot update resource"));
  EXPECT_FALSE(replica.ready());
  EXPECT_NE(replica.leaf(), "");
  EXPECT_THAT(replica.readiness(), HasSubstr("empty caBundle"));
}

TEST_F(TlsKeeperTest, RegistrationOfAnotherServiceIsToldButServed) {
  Json foreign = Json::parse(test::kRegistration);
  foreign["webhooks"][0]["clientConfig"]["service"]["name"] = "other";
  server_.put(kRegistrationPath, foreign.dump());
  test::Replica replica(server_, clock_);
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_TRUE(replica.ready());
  EXPECT_THAT(replica.readiness(), HasSubstr("warn  registration: entry pod.nezha.io calls the Service"));
}

TEST_F(TlsKeeperTest, SelectorEntriesComeAndGoWithTheRules) {
  test::Replica replica(server_, clock_);
  EXPECT_EQ(replica.reconcile(test::policy_for_app("train").get()), "");
  ASSERT_EQ(selector_entries(registration()).size(), 1u);
  const std::string name = *selector_entries(registration()).begin();
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_EQ(selector_entries(registration()).count(name), 1u) << "kept for a while";
  EXPECT_TRUE(replica.soon_due());
  clock_.advance(seconds(11));
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_EQ(selector_entries(registration()).size(), 0u);
  EXPECT_EQ(registration()["webhooks"].size(), 2u);
}

TEST_F(TlsKeeperTest, SelectorEntriesStayWhileTheConfigurationIsUnknown) {
  test::Replica replica(server_, clock_);
  replica.reconcile(test::policy_for_app("train").get());
  test::Replica restarted(server_, clock_);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(restarted.reconcile(nullptr), "");
    clock_.advance(seconds(30));
  }
  EXPECT_EQ(selector_entries(registration()).size(), 1u);
}

TEST_F(TlsKeeperTest, ReplicaThatLearnsLaterDoesNotFight) {
  test::Replica early(server_, clock_), late(server_, clock_);
  early.reconcile();
  late.reconcile();
  const auto policy = test::policy_for_app("train");
  EXPECT_EQ(early.reconcile(policy.get()), "");
  const size_t before = test::writes(server_);
  EXPECT_EQ(late.reconcile(), "");
  clock_.advance(seconds(5));
  EXPECT_EQ(late.reconcile(policy.get()), "");
  clock_.advance(seconds(30));
  EXPECT_EQ(late.reconcile(policy.get()), "");
  EXPECT_EQ(test::writes(server_), before);
}

TEST_F(TlsKeeperTest, EntryThatTheServerRefusesDoesNotStopTheBundle) {
  server_.set_faults([](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (request.method != "PUT" || request.body.find("/mutate/selector") == std::string::npos) return std::nullopt;
    return test::Fault{.status = 422, .body = R"({"message":"webhooks[2]: invalid"})"};
  });
  test::Replica replica(server_, clock_);
  const auto policy = test::policy_for_app("train");
  EXPECT_EQ(replica.reconcile(policy.get()), "");
  expect_good(replica);
  const size_t before = test::writes(server_);
  EXPECT_EQ(replica.reconcile(policy.get()), "");
  EXPECT_EQ(test::writes(server_), before) << "not tried again while the rules are the same";
}

TEST_F(TlsKeeperTest, FightWithAnotherWriterIsPaused) {
  test::Replica replica(server_, clock_);
  std::string last;
  for (int i = 0; i < 40; ++i) {
    server_.put(kRegistrationPath, test::kRegistration);
    last = replica.reconcile();
  }
  EXPECT_THAT(last, HasSubstr("something else keeps changing"));
  EXPECT_LE(server_.count("PUT", "mutatingwebhookconfigurations"), 20u);
  clock_.advance(seconds(61));
  EXPECT_EQ(replica.reconcile(), "");
  expect_good(replica);
}

TEST_F(TlsKeeperTest, LostSecretIsReplacedWithoutBreakingTrust) {
  test::Replica replica(server_, clock_);
  replica.reconcile();
  const std::string old_leaf = replica.leaf();
  server_.put(kSecretPath, R"({"type":"Opaque"})");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(replica.reconcile(), "");
    EXPECT_EQ(replica.leaf(), old_leaf) << "the new CA has not settled";
    expect_good(replica);
    clock_.advance(seconds(5));
  }
  clock_.advance(seconds(20));
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_NE(replica.leaf(), old_leaf);
  expect_good(replica);
  clock_.advance(seconds(60));
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_EQ(test::stored_cas(server_).size(), 1u);
  expect_good(replica);
}

TEST_F(TlsKeeperTest, SecretLostDuringARestartKeepsTheOldCaTrusted) {
  std::string old_leaf;
  {
    test::Replica replica(server_, clock_);
    replica.reconcile();
    old_leaf = replica.leaf();
  }
  server_.remove(kSecretPath);
  test::Replica restarted(server_, clock_);
  EXPECT_EQ(restarted.reconcile(), "");
  expect_good(restarted);
  EXPECT_TRUE(test::trusted(old_leaf, test::stored_cas(server_), clock_.wall()));
}

TEST_F(TlsKeeperTest, GarbageIsReplacedOnceAndSaid) {
  server_.put(kSecretPath, R"({"type":"Opaque","data":{"password":"c2VjcmV0"}})");
  test::Replica replica(server_, clock_);
  EXPECT_EQ(replica.reconcile(), "");
  expect_good(replica);
  replica.flush_events();
  const auto events = server_.paths_under("/api/v1/namespaces/nezha-system/events/");
  ASSERT_EQ(events.size(), 1u);
  const Json event = Json::parse(*server_.get(events[0]));
  EXPECT_EQ(event["reason"], "CertificateReplaced");
  EXPECT_THAT(event["message"].get<std::string>(), HasSubstr("the key ca.crt is missing"));
  EXPECT_THAT(event.dump(), ::testing::Not(HasSubstr("c2VjcmV0")));
}

TEST_F(TlsKeeperTest, GarbageThatComesBackIsNotFoughtOver) {
  test::Replica replica(server_, clock_);
  std::string last;
  for (int i = 0; i < 5; ++i) {
    server_.put(kSecretPath, R"({"data":{"x":"eA=="}})");
    last = replica.reconcile();
    clock_.advance(seconds(1));
  }
  EXPECT_THAT(last, HasSubstr("was made unreadable again"));
  EXPECT_EQ(server_.count("PUT", "/secrets/"), 1u);
  EXPECT_NE(replica.leaf(), "");
}

TEST_F(TlsKeeperTest, NoPermissionSaysWhich) {
  server_.set_faults([](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (request.path != kSecretPath) return std::nullopt;
    return test::Fault{.status = 403, .body = R"({"message":"secrets is forbidden: cannot get resource secrets"})"};
  });
  test::Replica replica(server_, clock_);
  EXPECT_THAT(replica.reconcile(), HasSubstr("cannot get resource secrets"));
  EXPECT_THAT(replica.readiness(), HasSubstr("cannot get resource secrets"));
}

TEST_F(TlsKeeperTest, ApiOutageKeepsServing) {
  test::Replica replica(server_, clock_);
  replica.reconcile();
  server_.set_faults([](const test::SeenRequest&) { return test::Fault{.status = 503, .body = ""}; });
  EXPECT_NE(replica.reconcile(), "");
  EXPECT_NE(replica.leaf(), "");
}

TEST_F(TlsKeeperTest, GarbageAnswersAreErrors) {
  for (const char* body : {"", "[]", "garbage", "7"}) {
    server_.set_faults(
        [body](const test::SeenRequest&) { return test::Fault{.status = 200, .body = body[0] ? body : " "}; });
    test::Replica replica(server_, clock_);
    EXPECT_NE(replica.reconcile(), "") << body;
  }
}

TEST_F(TlsKeeperTest, ExpiryIsMeasured) {
  test::Replica replica(server_, clock_);
  replica.reconcile();
  EXPECT_THAT(replica.metrics(), HasSubstr("nezha_webhook_certificate_expires_in_days 0.0027"));  // 240 s
}

}  // namespace
}  // namespace nezha::webhook
