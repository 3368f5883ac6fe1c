// The auditor against the fake API server: who counts as missed, what is told about them, and that it asks sparingly.
#include "webhook/controller/auditor.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/support/fake_api_server.h"
#include "test/support/manual_clock.h"
#include "test/support/policies.h"
#include "test/unit/webhook_controller/registration_fixture.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;

constexpr const char* kInstalled = "2026-03-01T12:00:00Z";

class AuditorTest : public ::testing::Test {
 protected:
  AuditorTest() {
    Json registration = Json::parse(test::kRegistration);
    registration["metadata"]["creationTimestamp"] = kInstalled;
    server_.put(test::kRegistrationPath, registration.dump());
    server_.put("/api/v1/namespaces/in", R"({"metadata":{"name":"in","labels":{"nezha.io/inject":"true"}}})");
    server_.put("/api/v1/namespaces/out", R"({"metadata":{"name":"out"}})");
  }

  struct PodIs {
    std::string name_space = "out", name = "p", inject = "true";
    std::string status = "";  // the annotation
    std::string phase = "Running", created = "2026-03-01T12:00:01Z";
  };
  void put(const PodIs& is) {
    Json pod{{"metadata",
              {{"name", is.name},
               {"namespace", is.name_space},
               {"uid", "uid-" + is.name},
               {"creationTimestamp", is.created},
               {"labels", Json::object()},
               {"annotations", Json::object()}}},
             {"spec", {{"containers", Json::array()}}},
             {"status", {{"phase", is.phase}}}};
    if (!is.inject.empty()) pod["metadata"]["labels"]["nezha.io/inject"] = is.inject;
    if (!is.status.empty()) pod["metadata"]["annotations"]["nezha.io/status"] = is.status;
    server_.put("/api/v1/namespaces/" + is.name_space + "/pods/" + is.name, pod.dump());
  }

  double look() {
    clock_.advance(std::chrono::minutes(1));
    auditor_.look(policy_);
    EXPECT_TRUE(events_.flush());
    return missed();
  }
  double missed() {
    const std::string text = metrics_->expose(), name = "\nnezha_webhook_missed_pods ";
    const size_t at = text.find(name);
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size()));
  }
  size_t events(const std::string& name_space) {
    return server_.paths_under("/api/v1/namespaces/" + name_space + "/events/").size();
  }

  test::FakeApiServer server_;
  test::ManualClock clock_;
  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();
  k8s::ApiClient api_{server_.address()};
  EventWriter events_{api_, clock_, *log_};
  Policy policy_ = test::make_policy({{"default", {"a.org"}, {}}}, {"10.0.0.1"});
  Auditor auditor_{{}, api_, events_, clock_, *metrics_, *log_};
};

TEST_F(AuditorTest, MissedIsWhoWouldBeInjectedAndWasNot) {
  const struct {
    PodIs pod;
    double missed;
  } cases[] = {
      {{}, 1},
      {{.phase = "Pending"}, 1},
      {{.name_space = "in", .inject = ""}, 1},
      {{.status = R"({"rule":"default","mode":"central","hosts":["a.org"],"reasons":[]})"}, 0},
      {{.phase = "Succeeded"}, 0},
      {{.phase = "Failed"}, 0},
      {{.created = "2026-03-01T11:59:59Z"}, 0},
      {{.inject = ""}, 0},
      {{.inject = "false"}, 0},
      {{.name_space = "in", .inject = "false"}, 0},
      {{.name_space = "kube-system"}, 0},
      {{.name_space = "extra"}, 0},
  };
  for (const auto& one : cases) {
    put(one.pod);
    EXPECT_EQ(look(), one.missed) << one.pod.name_space << " " << one.pod.inject << " " << one.pod.phase << " "
                                  << one.pod.created << " " << one.pod.status;
    server_.remove("/api/v1/namespaces/" + one.pod.name_space + "/pods/p");
  }
  put({.name_space = "in"});
  EXPECT_EQ(look(), 1) << "once, though its own label and its namespace's both opt in";
}

TEST_F(AuditorTest, WhomNoRuleWantsIsNotMissed) {
  policy_ = Policy();
  put({});
  EXPECT_EQ(look(), 0);
}

TEST_F(AuditorTest, EachGetsOneEventHoweverOftenItIsSeen) {
  put({});
  look();
  put({.phase = "Pending"});  // another version of it
  look();
  EXPECT_EQ(events("out"), 1u);
  put({.name = "q"});
  EXPECT_EQ(look(), 2);
  EXPECT_EQ(events("out"), 2u);
  EXPECT_EQ(server_.count("POST", "/events"), 2u);
  test::ManualClock clock;
  Auditor replica({}, api_, events_, clock, *metrics_, *log_);
  replica.look(policy_);
  EXPECT_TRUE(events_.flush());
  EXPECT_EQ(events("out"), 2u) << "another replica finds the same";
}

TEST_F(AuditorTest, AsksOnceAMinute) {
  look();
  server_.forget_requests();
  clock_.advance(std::chrono::seconds(59));
  auditor_.look(policy_);
  EXPECT_TRUE(server_.requests().empty());
  clock_.advance(std::chrono::seconds(1));
  auditor_.look(policy_);
  EXPECT_FALSE(server_.requests().empty());
}

TEST_F(AuditorTest, WithoutTheRightToLookTheCountStays) {
  put({});
  look();
  server_.set_faults([](const test::SeenRequest& request) -> std::optional<test::Fault> {
    if (request.target.find("/pods") == std::string::npos) return std::nullopt;
    return test::Fault{.status = 403, .body = R"({"message":"pods is forbidden"})"};
  });
  EXPECT_EQ(look(), 1);
  server_.set_faults(nullptr);
  server_.remove("/api/v1/namespaces/out/pods/p");
  EXPECT_EQ(look(), 0);
}

TEST_F(AuditorTest, CanBeSwitchedOff) {
  Auditor off({.enabled = false}, api_, events_, clock_, *metrics_, *log_);
  off.look(policy_);
  EXPECT_TRUE(server_.requests().empty());
}

}  // namespace
}  // namespace nezha::webhook
