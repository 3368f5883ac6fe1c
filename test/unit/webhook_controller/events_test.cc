// Events: their form, one per note whoever writes it, and waiting while the API fails.
#include "webhook/controller/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/support/fake_api_server.h"
#include "test/support/manual_clock.h"

namespace nezha::webhook {
namespace {

using Json = nlohmann::json;
constexpr const char* kEventsPath = "/api/v1/namespaces/team-a/events/";

Note note(const std::string& version, const std::string& message = "upstreams[0]: wrong") {
  return {{"ConfigMap", Namespace("team-a"), "rules", "uid-1", version}, true, "InvalidConfiguration", message};
}

class EventsTest : public ::testing::Test {
 protected:
  size_t stored() const { return server_.paths_under(kEventsPath).size(); }

  test::FakeApiServer server_;
  test::ManualClock clock_;
  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  k8s::ApiClient api_{server_.address()};
  EventWriter writer_{api_, clock_, *log_};
};

TEST_F(EventsTest, SaysWhatWhereAndWhy) {
  const Json event = Json::parse(event_json(note("7"), clock_.wall()));
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "InvalidConfiguration");
  EXPECT_EQ(event["message"], "upstreams[0]: wrong");
  EXPECT_EQ(event["metadata"]["namespace"], "team-a");
  EXPECT_EQ(event["involvedObject"]["kind"], "ConfigMap");
  EXPECT_EQ(event["involvedObject"]["name"], "rules");
  EXPECT_EQ(event["involvedObject"]["uid"], "uid-1");
  EXPECT_EQ(event["involvedObject"]["resourceVersion"], "7");
  EXPECT_EQ(event["firstTimestamp"], "2027-01-15T08:00:00Z");
  EXPECT_EQ(event["source"]["component"], "nezha-webhook");
}

TEST_F(EventsTest, LongMessageIsCutBetweenCharacters) {
  const Json event =
      Json::parse(event_json(note("7", std::string(999, 'a') + "é" + std::string(50, 'b')), clock_.wall()));
  EXPECT_EQ(event["message"], std::string(999, 'a') + "…");
}

TEST_F(EventsTest, LongObjectNameFits) {
  Note long_name = note("7");
  long_name.about.name = std::string(253, 'n');
  const Json event = Json::parse(event_json(long_name, clock_.wall()));
  EXPECT_LE(event["metadata"]["name"].get<std::string>().size(), 253u);
}

TEST_F(EventsTest, SameNoteFromTwoReplicasIsOneEvent) {
  EventWriter other(api_, clock_, *log_);
  writer_.add(note("7"));
  EXPECT_TRUE(writer_.flush());
  clock_.advance(std::chrono::minutes(5));
  other.add(note("7"));
  EXPECT_TRUE(other.flush());
  EXPECT_EQ(stored(), 1u);
  other.add(note("8"));
  EXPECT_TRUE(other.flush());
  EXPECT_EQ(stored(), 2u);
}

TEST_F(EventsTest, WaitsWhileTheApiFails) {
  server_.set_faults([](const test::SeenRequest&) { return test::Fault{.status = 503, .body = ""}; });
  writer_.add(note("7"));
  EXPECT_FALSE(writer_.flush());
  server_.set_faults(nullptr);
  EXPECT_TRUE(writer_.flush());
  EXPECT_EQ(stored(), 1u);
  server_.forget_requests();
  EXPECT_TRUE(writer_.flush());
  EXPECT_TRUE(server_.requests().empty());
}

TEST_F(EventsTest, ForbiddenIsGivenUp) {
  server_.set_faults([](const test::SeenRequest&) { return test::Fault{.status = 403, .body = ""}; });
  writer_.add(note("7"));
  EXPECT_TRUE(writer_.flush());
}

}  // namespace
}  // namespace nezha::webhook
