// The HTTPS edge: statuses, limits, keep-alive, many callers at once.
#include <atomic>
#include <nlohmann/json.hpp>
#include <vector>

#include "nezha/base/limits.h"
#include "test/unit/webhook/serve_fixture.h"

namespace nezha::test {
namespace {

using Json = nlohmann::json;

TEST_F(ServeTest, AnswersEveryEntryOverOneConnection) {
  start();
  TlsClient client(port());
  for (const char* path : {"/mutate", "/mutate/namespace", "/mutate/selector", "/mutate/ancestor"}) {
    const auto reply = client.post(path, review());
    ASSERT_TRUE(reply) << path;
    EXPECT_EQ(reply->status, 200) << path;
    EXPECT_TRUE(reply->has_header("Content-Type: application/json")) << reply->head;
    EXPECT_TRUE(Json::parse(reply->body)["response"]["allowed"].get<bool>()) << path;
  }
  EXPECT_EQ(counted(R"(nezha_admission_reviews_total{entry="pod",result="inject"})"), 1);
  EXPECT_EQ(counted(R"(nezha_admission_seconds_count{entry="ancestor"})"), 1);
}

TEST_F(ServeTest, PolicyOfTheMomentIsUsed) {
  start();
  TlsClient client(port());
  EXPECT_TRUE(Json::parse(client.post("/mutate", review())->body)["response"].contains("patch"));
  policies_.publish(std::make_shared<const webhook::Policy>());
  EXPECT_FALSE(Json::parse(client.post("/mutate", review())->body)["response"].contains("patch"));
}

struct StatusCase {
  const char* name;
  std::string request;
  int status;
};
class Statuses : public ServeTest, public testing::WithParamInterface<StatusCase> {};

// After any of them the connection must be in step again, or closed.
TEST_P(Statuses, AreAsDocumentedAndHaveAJsonMessage) {
  start();
  TlsClient client(port());
  client.send(GetParam().request);
  const auto reply = client.read_reply();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, GetParam().status);
  EXPECT_TRUE(Json::parse(reply->body).contains("message")) << reply->body;
  if (reply->has_header("Connection: close")) {
    EXPECT_TRUE(client.closed_by_server());
  } else {
    const auto next = client.post("/mutate", review());
    ASSERT_TRUE(next);
    EXPECT_EQ(next->status, 200);
  }
}

std::string head(const std::string& line, const std::string& fields = "") {
  return line + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n";
}
const std::string kJson = "Content-Type: application/json\r\n";

INSTANTIATE_TEST_SUITE_P(
    Cases, Statuses,
    testing::Values(
        StatusCase{"malformed_review", head("POST /mutate", kJson + "Content-Length: 2\r\n") + "{}", 400},
        StatusCase{"wrong_type", head("POST /mutate", "Content-Type: text/plain\r\nContent-Length: 2\r\n") + "{}", 415},
        StatusCase{"no_type", head("POST /mutate", "Content-Length: 2\r\n") + "{}", 415},
        StatusCase{"packed", head("POST /mutate", kJson + "Content-Encoding: gzip\r\nContent-Length: 0\r\n"), 415},
        StatusCase{"no_length", head("POST /mutate", kJson), 411}, StatusCase{"get", head("GET /mutate"), 405},
        StatusCase{"put_with_body", head("PUT /mutate", "Content-Length: 3\r\n") + "abc", 405},
        StatusCase{"unknown_path", head("GET /other"), 404},
        StatusCase{"post_to_unknown_path", head("POST /mutate/x", kJson + "Content-Length: 2\r\n") + "{}", 404},
        StatusCase{"chunked_malformed",
                   head("POST /mutate", kJson + "Transfer-Encoding: chunked\r\n") + "2\r\n{}\r\n0\r\n\r\n", 400}),
    [](const auto& c) { return c.param.name; });

TEST_F(ServeTest, ContentTypeMayHaveACharset) {
  start();
  TlsClient client(port());
  EXPECT_EQ(client.post("/mutate", review(), "Application/JSON; charset=utf-8")->status, 200);
}

TEST_F(ServeTest, ChunkedReviewIsRead) {
  start();
  TlsClient client(port());
  client.send(head("POST /mutate", kJson + "Transfer-Encoding: chunked\r\n"));
  std::string body = review();
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", body.size());
  client.send(size + body + "\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_reply()->status, 200);
}

TEST_F(ServeTest, BodyOverTheLimitIsRefusedAndTheConnectionGoesOn) {
  start();
  TlsClient client(port());
  std::string body = review();
  body.resize(limits::kReviewBytesMax, ' ');
  EXPECT_EQ(client.post("/mutate", body)->status, 200);
  body += ' ';
  EXPECT_EQ(client.post("/mutate", body)->status, 413);
  EXPECT_EQ(client.post("/mutate", review())->status, 200);
  EXPECT_EQ(counted(R"(nezha_admission_reviews_total{entry="pod",result="refused"})"), 1);
}

TEST_F(ServeTest, BodyWithoutEndIsCutOff) {
  start();
  TlsClient client(port());
  client.send(head("POST /mutate", kJson + "Transfer-Encoding: chunked\r\n"));
  const std::string chunk = "100000\r\n" + std::string(0x100000, ' ') + "\r\n";
  int chunks = 0;
  while (client.ok() && chunks < 1000) {
    client.send(chunk);
    ++chunks;
  }
  EXPECT_LT(chunks, 1000) << "the server read 1000 MiB";
  TlsClient next(port());
  EXPECT_EQ(next.post("/mutate", review())->status, 200);
}

TEST_F(ServeTest, HealthzAnswers) {
  start();
  TlsClient client(port());
  client.send(head("GET /healthz"));
  EXPECT_EQ(client.read_reply()->status, 200);
}

TEST_F(ServeTest, ManyCallersAtOnceAllGetTheirOwnAnswer) {
  start();
  std::atomic<int> answered{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 16; ++caller) {
    callers.emplace_back([&, caller] {
      TlsClient client(port());
      for (int call = 0; call < 25; ++call) {
        auto one = Json::parse(review());
        const std::string uid = std::to_string(caller) + '-' + std::to_string(call);
        one["request"]["uid"] = uid;
        const auto reply = client.post("/mutate", one.dump());
        if (reply && reply->status == 200 && Json::parse(reply->body)["response"]["uid"] == uid) ++answered;
      }
    });
  }
  for (auto& caller : callers) caller.join();
  EXPECT_EQ(answered, 16 * 25);
}

TEST_F(ServeTest, AFullServerClosesTheConnectionThatIdlesLongest) {
  settings().connections_max = 2;
  start();
  TlsClient first(port()), second(port());
  ASSERT_EQ(first.post("/mutate", review())->status, 200);
  wait_for_requests_in_flight(0);  // a request ends on the server a little after its reply is read
  ASSERT_EQ(second.post("/mutate", review())->status, 200);
  wait_for_requests_in_flight(0);
  TlsClient third(port());
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third.post("/mutate", review())->status, 200);
  EXPECT_TRUE(first.closed_by_server());
  EXPECT_EQ(second.post("/mutate", review())->status, 200);
}

TEST_F(ServeTest, IdleConnectionIsClosedAfterItsTime) {
  settings().idle_timeout = std::chrono::seconds(1);
  start();
  TlsClient client(port());
  ASSERT_EQ(client.post("/mutate", review())->status, 200);
  EXPECT_TRUE(client.closed_by_server());
}

TEST_F(ServeTest, PortInUseIsAnErrorThatNamesIt) {
  start();
  auto settings_of_second = settings();
  settings_of_second.port = port();
  webhook::AdmissionServer second(settings_of_second, policies_, certificate_, clock_, *metrics_, *log_);
  const auto bound = second.bind();
  ASSERT_FALSE(bound);
  EXPECT_NE(bound.error().message.find(std::to_string(port())), std::string::npos) << bound.error().message;
}

}  // namespace
}  // namespace nezha::test
