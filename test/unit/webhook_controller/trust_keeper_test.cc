// TrustKeeper: what it makes and removes, races, lost objects, foreign objects, namespaces that fail, crashes.
#include "webhook/controller/trust_keeper.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "nezha/pki/certificates.h"
#include "test/unit/webhook_controller/registration_fixture.h"
#include "test/unit/webhook_controller/trust_world.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;
using std::chrono::seconds;
using test::bundle_path;
using test::kCaSecret;
using test::kLeafSecret;
using test::sidecar_secret_path;
using test::TrustReplica;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class TrustKeeperTest : public ::testing::Test {
 protected:
  Json at(const std::string& path) const { return Json::parse(world_.server.get(path).value_or("null")); }
  size_t writes() const {
    size_t out = 0;
    for (const auto& request : world_.server.requests()) out += request.method == "GET" ? 0 : 1;
    return out;
  }
  // A pod of tenants with bundle and certificates as they are now.
  std::vector<std::string> roots_of(const std::string& name_space) const {
    return pki::split_bundle(at(bundle_path(name_space))["data"]["ca-bundle.crt"].get<std::string>());
  }

  test::TrustWorld world_;
};

TEST_F(TrustKeeperTest, LabelledNamespaceGetsABundleAndTheCacheItsCertificates) {
  world_.label("team");
  TrustReplica replica(world_);
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_THAT(world_.leaf_hosts(kLeafSecret), ElementsAre("a.org", "b.org"));
  EXPECT_THAT(world_.bundle_hosts("team"), ElementsAre("a.org", "b.org"));
  EXPECT_EQ(world_.broken(), "");
  const Json bundle = at(bundle_path("team"));
  EXPECT_EQ(bundle["metadata"]["labels"]["nezha.io/trust"], "true");
  EXPECT_EQ(bundle["metadata"]["ownerReferences"][0]["kind"], "MutatingWebhookConfiguration");
  EXPECT_EQ(bundle["metadata"]["ownerReferences"][0]["uid"], at(test::kRegistrationPath)["metadata"]["uid"]);
  EXPECT_FALSE(bundle["binaryData"]["truststore.p12"].get<std::string>().empty());
  EXPECT_EQ(roots_of("team").size(), 2u) << "the public one and ours";
  EXPECT_EQ(at(sidecar_secret_path("team")), nullptr) << "no sidecars are configured";
  EXPECT_EQ(at(kCaSecret)["metadata"]["labels"]["helm"], "yes");
}

TEST_F(TrustKeeperTest, NoPrivateKeyOfACaLeavesTheReleasesSecret) {
  world_.intercept({"a.org"}, true);
  world_.label("team");
  TrustReplica(world_).settle();
  const std::string ca_key = SecretData(read_secret_data(at(kCaSecret)))["cache.key"];
  ASSERT_FALSE(ca_key.empty());
  for (const auto& path : {bundle_path("team"), sidecar_secret_path("team"), std::string(kLeafSecret)}) {
    for (const auto& [key, text] : read_secret_data(at(path))) EXPECT_NE(text, ca_key) << path << key;
    EXPECT_EQ(at(path).dump().find("BEGIN EC PRIVATE"), std::string::npos);
  }
  EXPECT_EQ(at(bundle_path("team")).dump().find("PRIVATE KEY"), std::string::npos);
}

TEST_F(TrustKeeperTest, PassesWithoutAChangeWriteNothing) {
  world_.intercept({"a.org"}, true);
  world_.label("team");
  TrustReplica replica(world_), other(world_);
  replica.settle();
  const size_t before = writes();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(replica.reconcile(), "");
    EXPECT_EQ(other.reconcile(), "");
  }
  EXPECT_EQ(writes(), before);
  EXPECT_FALSE(replica.soon_due());
}

TEST_F(TrustKeeperTest, NothingToInterceptMakesNothing) {
  world_.intercept({});
  world_.label("team");
  TrustReplica replica(world_);
  replica.settle();
  world_.clock.advance(seconds(60));
  replica.settle();
  EXPECT_EQ(writes(), 0u);
}

TEST_F(TrustKeeperTest, NotedNamespaceGetsABundleToo) {
  TrustReplica replica(world_);
  replica.reconcile();
  EXPECT_EQ(at(bundle_path("other")), nullptr);
  replica.note("other");
  replica.reconcile();
  EXPECT_THAT(world_.bundle_hosts("other"), ElementsAre("a.org", "b.org"));
  for (const char* never : {"kube-system", "nezha-system"}) {
    replica.note(never);
    replica.reconcile();
    EXPECT_EQ(at(bundle_path(never)), nullptr);
  }
}

TEST_F(TrustKeeperTest, SidecarsHaveACaOfTheirNamespace) {
  world_.intercept({"a.org"}, true);
  world_.label("team");
  world_.label("other");
  TrustReplica(world_).settle();
  EXPECT_EQ(world_.broken(), "");
  EXPECT_THAT(world_.leaf_hosts(sidecar_secret_path("team")), ElementsAre("a.org"));
  EXPECT_EQ(at(bundle_path("team"))["data"]["sidecar-hosts"], "a.org\n");
  // What one namespace's sidecars show, another does not trust.
  const auto leaf = SecretData(read_secret_data(at(sidecar_secret_path("team"))))["a.org.crt"];
  for (const auto& root : roots_of("other")) EXPECT_FALSE(pki::check_chain(leaf, root, "a.org", world_.clock.wall()));
}

TEST_F(TrustKeeperTest, HostsComeAndGoWithoutBreakingPodsThatRun) {
  world_.label("team");
  TrustReplica replica(world_);
  replica.settle();
  const auto old_roots = roots_of("team");
  world_.intercept({"b.org", "c.org"});
  replica.settle();
  EXPECT_THAT(world_.leaf_hosts(kLeafSecret), ElementsAre("b.org", "c.org"));
  EXPECT_THAT(world_.bundle_hosts("team"), ElementsAre("b.org", "c.org"));
  EXPECT_EQ(world_.broken(), "");
  // A pod that mounted the bundle of before still reads b.org, and is not fooled about c.org.
  SecretData leaves = read_secret_data(at(kLeafSecret));
  const WallTime now = world_.clock.wall();
  EXPECT_TRUE(pki::check_chain(leaves["b.org.crt"], old_roots.back(), "b.org", now));
  EXPECT_FALSE(pki::check_chain(leaves["c.org.crt"], old_roots.back(), "c.org", now));
}

TEST_F(TrustKeeperTest, WithoutARegistrationNothingIsMadeThatNobodyWouldRemove) {
  world_.server.remove(test::kRegistrationPath);
  world_.label("team");
  TrustReplica replica(world_);
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_EQ(writes(), 0u);
  EXPECT_TRUE(replica.soon_due());
}

TEST_F(TrustKeeperTest, ObjectsOfTheUsersAreNotTouched) {
  world_.server.put(bundle_path("team"), R"({"data":{"mine":"1"}})");
  world_.label("team");
  world_.label("other");
  TrustReplica replica(world_);
  replica.settle();
  EXPECT_EQ(at(bundle_path("team"))["data"], Json({{"mine", "1"}}));
  EXPECT_THAT(world_.bundle_hosts("other"), ElementsAre("a.org", "b.org"));
  EXPECT_THAT(replica.metrics(), HasSubstr("nezha_webhook_trust_failures_total 1"));
}

TEST_F(TrustKeeperTest, ObjectsOfAnotherReleaseAreNotTouched) {
  const std::string theirs = R"({"metadata":{"labels":{"nezha.io/trust":"true"},"ownerReferences":[{"name":"fast"}]},
                                 "data":{"hosts":"a.org"}})";
  world_.server.put(bundle_path("team"), theirs);
  world_.label("team");
  TrustReplica(world_).settle();
  EXPECT_EQ(at(bundle_path("team"))["data"], Json({{"hosts", "a.org"}}));
}

TEST_F(TrustKeeperTest, NamespaceThatFailsStopsNoOtherAndIsTriedMoreAndMoreRarely) {
  world_.label("a-quota");
  world_.label("team");
  size_t tries = 0;
  world_.server.set_faults([&](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (request.method != "POST" || request.path.find("a-quota") == std::string::npos) return std::nullopt;
    ++tries;
    return test::Fault{.status = 403, .body = R"({"message":"exceeded quota"})"};
  });
  TrustReplica replica(world_);
  for (int second = 0; second < 600; ++second) {
    EXPECT_EQ(replica.reconcile(), "");
    world_.clock.advance(seconds(1));
  }
  EXPECT_THAT(world_.bundle_hosts("team"), ElementsAre("a.org", "b.org"));
  EXPECT_GE(tries, 5u);
  EXPECT_LE(tries, 12u);
  world_.server.set_faults(nullptr);
  world_.clock.advance(seconds(600));
  replica.reconcile();
  EXPECT_THAT(world_.bundle_hosts("a-quota"), ElementsAre("a.org", "b.org"));
}

TEST_F(TrustKeeperTest, DriftIsRepaired) {
  world_.label("team");
  TrustReplica replica(world_);
  replica.settle();
  Json bundle = at(bundle_path("team"));
  bundle["data"]["ca-bundle.crt"] = "somebody's";
  world_.server.put(bundle_path("team"), bundle.dump());
  world_.server.remove(kLeafSecret);
  world_.clock.advance(seconds(61));
  EXPECT_EQ(replica.reconcile(), "");
  EXPECT_EQ(world_.broken(), "");
  EXPECT_EQ(roots_of("team").size(), 2u);
  EXPECT_THAT(world_.leaf_hosts(kLeafSecret), ElementsAre("a.org", "b.org"));
}

TEST_F(TrustKeeperTest, LostCasAreMadeAnewAndEverythingFollows) {
  world_.label("team");
  TrustReplica replica(world_);
  replica.settle();
  world_.server.put(kCaSecret, R"({"data":{"cache.crt":"bm9uZQ==","cache.key":"bm9uZQ=="}})");
  EXPECT_EQ(replica.reconcile(), "");
  replica.settle();
  EXPECT_EQ(world_.broken(), "");
}

TEST_F(TrustKeeperTest, ReplicasThatDisagreeChangeObjectsSlowly) {
  world_.label("team");
  TrustReplica replica(world_), other(world_);
  for (int i = 0; i < 100; ++i) {
    world_.intercept({i % 2 == 0 ? "a.org" : "b.org"});
    (i % 2 == 0 ? replica : other).reconcile();
  }
  EXPECT_LE(writes(), 60u);
}

TEST_F(TrustKeeperTest, WhenNothingIsInterceptedKeysGoAtOnceAndTrustAfterTheOverlap) {
  world_.intercept({"a.org"}, true);
  world_.label("team");
  TrustReplica replica(world_);
  replica.settle();
  const std::string ca = at(kCaSecret)["data"]["cache.crt"];
  world_.intercept({}, true);
  replica.reconcile();
  EXPECT_THAT(world_.leaf_hosts(kLeafSecret), ElementsAre("a.org")) << "the configuration may come back at once";
  world_.clock.advance(seconds(11));
  replica.settle();
  EXPECT_THAT(world_.leaf_hosts(kLeafSecret), IsEmpty());
  EXPECT_EQ(at(sidecar_secret_path("team")), nullptr);
  EXPECT_NE(at(bundle_path("team")), nullptr) << "pods that wait to be scheduled mount it";

  world_.intercept({"a.org"}, true);
  replica.settle();
  EXPECT_EQ(at(kCaSecret)["data"]["cache.crt"], ca) << "pods of before trust this one";
  EXPECT_FALSE(at(kCaSecret)["metadata"]["annotations"].contains("nezha.io/unused-since"));
  world_.intercept({}, true);
  replica.settle();
  world_.clock.advance(seconds(11));
  replica.settle();
  world_.clock.advance(test::short_trust_times().overlap);
  replica.settle();
  EXPECT_EQ(at(bundle_path("team")), nullptr);
  EXPECT_THAT(read_secret_data(at(kCaSecret)), IsEmpty());
  const size_t before = writes();
  replica.settle();
  EXPECT_EQ(writes(), before);
}

// Two replicas live through more than a CA's life. The write number `write` is done, or not, and its replica dies
// without learning it.
struct Crash {
  size_t write;
  bool done;
};

size_t live(const Crash& crash) {
  test::TrustWorld world;
  world.intercept({"a.org"}, true);
  world.label("team");
  size_t writes = 0;
  bool crashed = false;
  std::string problem;
  world.server.set_faults([&](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (request.method == "GET" || ++writes != crash.write) return std::nullopt;
    crashed = true;
    return test::Fault{.status = 500, .body = "", .after = crash.done};
  });
  std::array<std::optional<TrustReplica>, 2> replicas;
  for (auto& replica : replicas) replica.emplace(world);
  std::set<std::string> cas;
  for (int step = 0; step < 30; ++step) {
    if (step == 10) world.intercept({"a.org", "b.org"}, true);
    for (auto& replica : replicas) {
      replica->reconcile();
      if (std::exchange(crashed, false)) replica.emplace(world);
      EXPECT_EQ(world.broken(), "") << "crash at write " << crash.write << " in step " << step;
    }
    const auto secret = Json::parse(*world.server.get(kCaSecret));
    if (secret.contains("data")) cas.insert(SecretData(read_secret_data(secret))["cache.key"]);
    world.clock.advance(seconds(40));
  }
  EXPECT_GE(cas.size(), 2u) << "the CA was rotated";
  for (auto& replica : replicas) replica->settle(2);
  for (auto& replica : replicas) EXPECT_EQ(replica->reconcile(), "");
  EXPECT_EQ(world.bundle_hosts("team"), (std::vector<std::string>{"a.org", "b.org"}));
  return writes;
}

TEST(TrustLife, SurvivesACrashAtAnyWrite) {
  const size_t all = live({0, false});
  EXPECT_LE(all, 60u);
  for (size_t write = 1; write <= all; ++write) {
    SCOPED_TRACE(write);
    live({write, write % 2 == 0});  // done, and not done
  }
}

}  // namespace
}  // namespace nezha::webhook
