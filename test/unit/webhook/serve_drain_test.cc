// stop(): reviews are still answered for the grace period, what is in flight is finished, then run() returns.
#include <future>

#include "test/unit/webhook/serve_fixture.h"

namespace nezha::test {
namespace {

using namespace std::chrono_literals;

TEST_F(ServeTest, WhileDrainingNewConnectionsAreServedAndToldToClose) {
  settings().drain_grace = 1h;
  start();
  TlsClient before(port());
  ASSERT_EQ(before.post("/mutate", review())->status, 200);
  server_->stop();
  // The first answer after stop() says close; until then the drain may not have begun on the server's thread.
  std::optional<HttpReply> reply;
  do {
    TlsClient during(port());
    reply = during.post("/mutate", review());
    ASSERT_TRUE(reply);
    ASSERT_EQ(reply->status, 200);
  } while (!reply->has_header("Connection: close"));
  reply = before.post("/mutate", review());
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_TRUE(reply->has_header("Connection: close"));
  EXPECT_TRUE(before.closed_by_server());
  stop_and_wait();  // the second stop() ends the hour
}

TEST_F(ServeTest, IdleConnectionsDoNotHoldTheDrain) {
  settings().idle_timeout = 3600s;
  start();
  TlsClient idle(port());
  ASSERT_EQ(idle.post("/mutate", review())->status, 200);
  stop_and_wait();
  EXPECT_TRUE(idle.closed_by_server());
}

TEST_F(ServeTest, ARequestInFlightIsFinished) {
  start();
  TlsClient client(port());
  ASSERT_EQ(client.post("/mutate", review())->status, 200);
  wait_for_requests_in_flight(0);
  const std::string body = review();
  client.send("POST /mutate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body.substr(0, 10));
  wait_for_requests_in_flight(1);
  auto stopped = std::async(std::launch::async, [this] { stop_and_wait(); });
  client.send(body.substr(10));
  const auto reply = client.read_reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  EXPECT_TRUE(client.closed_by_server());
  stopped.get();
}

TEST_F(ServeTest, StopBeforeRunEndsRunAtOnce) {
  webhook::AdmissionServer server(settings(), policies_, certificate_, clock_, *metrics_, *log_);
  ASSERT_TRUE(server.bind());
  server.stop();
  server.run();
}

}  // namespace
}  // namespace nezha::test
