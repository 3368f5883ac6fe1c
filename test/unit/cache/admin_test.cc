#include "cache/admin/admin.h"

#include <gtest/gtest.h>

#include <fstream>

#include "nezha/pki/base64.h"
#include "test/support/event.h"
#include "test/support/raw_client.h"
#include "test/support/temporary_directory.h"

namespace nezha::test {
namespace {

class AdminTest : public testing::Test {
 protected:
  void start(const std::string& token_path, std::chrono::milliseconds request_time = cache::kAdminRequestTime) {
    cache::AdminCallbacks callbacks;
    callbacks.not_ready_because = [] { return std::string(); };
    callbacks.metrics = [] { return std::string("m 1\n"); };
    callbacks.purge = [this](std::string_view json) -> Result<std::string> {
      seen_ = json;
      if (json == "bad") return fail(Remedy::kFixInput, "bad body");
      return std::string("{\"purged\": 3}\n");
    };
    callbacks.take_events = [](std::string_view) -> Result<std::string> { return std::string("{}\n"); };
    callbacks.prefetch = [](std::string_view json) -> Result<std::string> {
      if (json == "bad") return fail(Remedy::kFixInput, "bad body");
      if (json == "many") return fail(Remedy::kRetryLater, "too many");
      return std::string("{\"job\":1}\n");
    };
    callbacks.prefetch_report = [] { return std::string("{\"jobs\":[]}\n"); };
    auto server = cache::start_admin_server({"127.0.0.1", 0}, token_path, std::move(callbacks), request_time);
    ASSERT_TRUE(server);
    server_ = std::move(server.value());
  }
  ClientAnswer post(const std::string& path, const std::string& authorization, const std::string& body = "{}") {
    RawClient client(server_->port());
    return client.ask("POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
                      "\r\n" + (authorization.empty() ? "" : "Authorization: " + authorization + "\r\n") + "\r\n" +
                      body);
  }
  void write_token(const std::string& text) { std::ofstream(token_path_) << text; }

  const TemporaryDirectory folder_;
  const std::string token_path_ = folder_.path() + "/token";
  std::string seen_;
  std::unique_ptr<cache::AdminServer> server_;
};

TEST_F(AdminTest, ChangesAskForTheToken) {
  const std::string token = "0123456789abcdef-secret";
  write_token(token + "\n");
  start(token_path_);
  for (const std::string path : {"/purge", "/events/s3"}) {
    for (const std::string& wrong :
         {std::string(), std::string("Bearer"), "Bearer " + token + "x", "Bearer " + token.substr(1), "Token " + token,
          std::string("Bearer "), "Basic " + token, "Basic " + pki::base64_encode("user:wrong"),
          "Basic " + pki::base64_encode(token)}) {
      EXPECT_EQ(post(path, wrong).status, 401) << wrong;
    }
    EXPECT_EQ(post(path, "Bearer " + token).status, 200);
    EXPECT_EQ(post(path, "bearer  " + token).status, 200);
    EXPECT_EQ(post(path, "Basic " + pki::base64_encode("ceph:" + token)).status, 200);
  }
  EXPECT_EQ(post("/purge", "Bearer " + token, "{\"upstream\": \"u\"}").body, "{\"purged\": 3}\n");
  EXPECT_EQ(seen_, "{\"upstream\": \"u\"}");
  const ClientAnswer bad = post("/purge", "Bearer " + token, "bad");
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.body, "bad body\n");
}

TEST_F(AdminTest, PrefetchAsksForTheTokenAlsoToLook) {
  const std::string token = "0123456789abcdef-secret";
  write_token(token);
  start(token_path_);
  const auto look = [&](const std::string& authorization) {
    RawClient client(server_->port());
    return client.ask("GET /prefetch HTTP/1.1\r\nHost: x\r\n" + authorization + "\r\n");
  };
  EXPECT_EQ(look("").status, 401);
  EXPECT_EQ(look("Authorization: Bearer " + token + "\r\n").body, "{\"jobs\":[]}\n");
  EXPECT_EQ(post("/prefetch", "").status, 401);
  const ClientAnswer started = post("/prefetch", "Bearer " + token);
  EXPECT_EQ(started.status, 202);
  EXPECT_EQ(started.body, "{\"job\":1}\n");
  EXPECT_EQ(post("/prefetch", "Bearer " + token, "bad").status, 400);
  EXPECT_EQ(post("/prefetch", "Bearer " + token, "many").status, 503);
}

TEST_F(AdminTest, TheTokenIsReadEachTime) {
  write_token("the-first-token-of-all");
  start(token_path_);
  EXPECT_EQ(post("/purge", "Bearer the-first-token-of-all").status, 200);
  write_token("another-token-of-enough-length");
  EXPECT_EQ(post("/purge", "Bearer the-first-token-of-all").status, 401);
  EXPECT_EQ(post("/purge", "Bearer another-token-of-enough-length").status, 200);
  for (const std::string text : {"", " \n", "short"}) {
    write_token(text);
    EXPECT_EQ(post("/purge", "Bearer " + text).status, 503) << "an empty token is nobody's key";
  }
}

// The body itself is no way in: nothing of it is read for a stranger, and nothing that could grow for anybody.
TEST_F(AdminTest, RefusesBeforeTheBodyIsRead) {
  const std::string token = "0123456789abcdef-secret";
  write_token(token);
  start(token_path_);
  const auto head_alone = [&](const std::string& line, const std::string& fields) {
    RawClient client(server_->port());
    return client.ask(line + " HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n").status;
  };
  EXPECT_EQ(head_alone("POST /purge", "Content-Length: 1000000\r\n"), 401);
  EXPECT_EQ(head_alone("POST /purge", "Transfer-Encoding: chunked\r\n"), 401);
  EXPECT_EQ(head_alone("POST /healthz", "Transfer-Encoding: chunked\r\n"), 404);
  EXPECT_EQ(head_alone("PUT /purge", "Content-Length: 1000000\r\n"), 404);
  const std::string authorised = "Authorization: Bearer " + token + "\r\n";
  EXPECT_EQ(head_alone("POST /purge", authorised + "Transfer-Encoding: chunked\r\n"), 411);
  EXPECT_EQ(head_alone("POST /purge", authorised + "Content-Encoding: gzip\r\nContent-Length: 1000\r\n"), 415);
  EXPECT_EQ(head_alone("POST /purge", authorised + "Content-Length: 2000000\r\n"), 413);
  EXPECT_EQ(seen_, "");
}

// A probe is answered, whoever else has connected and says nothing, or not all of it.
TEST_F(AdminTest, ProbesAreAnsweredBesideSlowConnections) {
  start("", kWatchdog * 2);
  std::vector<RawClient> slow;
  for (int i = 0; i < 100; ++i) {
    slow.emplace_back(server_->port());
    if (i % 2) slow.back().send("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Half");
  }
  for (const std::string path : {"/healthz", "/readyz", "/metrics"}) {
    RawClient client(server_->port());
    EXPECT_EQ(client.ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n").status, 200) << path;
  }
  for (size_t i = 1; i < slow.size(); i += 2)
    EXPECT_EQ(slow[i].ask(": y\r\n\r\n").status, 200) << "it was waited for meanwhile";
}

// A request ends, also one of which a little comes all the time.
TEST_F(AdminTest, ARequestThatDripsIsCutOff) {
  start("", std::chrono::milliseconds(200));
  RawClient client(server_->port());
  client.send("GET /healthz HTTP/1.1\r\nHost: x\r\n");
  EXPECT_TRUE(eventually([&] { return !client.send("X-More: y\r\n"); }));
}

TEST_F(AdminTest, WithoutATokenNobodyMayPurge) {
  start("");
  EXPECT_EQ(post("/purge", "Bearer ").status, 403);
  EXPECT_EQ(post("/purge", "").status, 403);
  EXPECT_EQ(seen_, "");
}

}  // namespace
}  // namespace nezha::test
