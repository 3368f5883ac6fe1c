// The admin port: health, readiness with its reasons, metrics.
#include "webhook/admin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

namespace nezha::webhook {
namespace {

using ::testing::HasSubstr;

TEST(AdminServer, HealthReadinessAndMetrics) {
  Readiness readiness;
  readiness.set("certificate", "none loaded yet");
  const auto metrics = obs::make_metrics();
  metrics->counter("a_total", "help").add();
  AdminServer server(readiness, *metrics);
  const auto port = server.start("127.0.0.1", 0);
  ASSERT_TRUE(port) << port.error().message;
  httplib::Client client("127.0.0.1", port.value());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  const auto waiting = client.Get("/readyz");
  EXPECT_EQ(waiting->status, 503);
  EXPECT_THAT(waiting->body, HasSubstr("certificate: none loaded yet"));
  readiness.set("certificate", "");
  EXPECT_EQ(client.Get("/readyz")->status, 200);
  EXPECT_THAT(client.Get("/metrics")->body, HasSubstr("a_total 1"));
  EXPECT_EQ(client.Get("/other")->status, 404);
}

TEST(AdminServer, TakenAddressIsAnErrorThatNamesIt) {
  Readiness readiness;
  const auto metrics = obs::make_metrics();
  AdminServer first(readiness, *metrics), second(readiness, *metrics);
  const auto port = first.start("127.0.0.1", 0);
  ASSERT_TRUE(port);
  const auto taken = second.start("192.0.2.1", port.value());  // not an address of this machine
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("192.0.2.1:" + std::to_string(port.value())));
}

}  // namespace
}  // namespace nezha::webhook
