// No cache for as long as the test likes: what the supervisor relays, what it refuses, and that what was written
// meanwhile is never answered from before.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <mutex>
#include <thread>

#include "test/supervise/supervised.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"
#include "test/support/tls_peer.h"

namespace nezha::test {
namespace {

// Answers GET with what was PUT last, and everything with what it was asked.
class Versions {
 public:
  void operator()(OriginConnection& connection, const RecordedRequest& request) {
    std::lock_guard lock(mutex_);
    if (request.method() == "PUT") body_ = request.body;
    connection.send(response(200, "ETag: \"" + body_ + "\"\r\nX-Method: " + request.method() + "\r\n",
                             request.method() == "HEAD" ? "" : body_));
  }

 private:
  std::mutex mutex_;
  std::string body_ = "old";
};

struct Away : testing::Test {
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(supervised.start());
    EXPECT_EQ(supervised.ask(get("/a")).body, "old");
    EXPECT_TRUE(supervised.becomes_hit("/a"));
    supervised.send_away();
  }
  Versions versions;
  ScriptedOrigin origin{std::ref(versions)};
  Supervised supervised{origin.port()};
};

TEST_F(Away, RequestsAreRelayed) {
  const ClientAnswer answer = supervised.ask(get("/a"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "old");
  EXPECT_EQ(answer.cache_status(), "nezha; fwd=bypass; detail=cache-away");
  EXPECT_EQ(answer.value("Connection"), "close") << "the next connection finds the cache again";
  EXPECT_TRUE(origin.last().has("CDN-Loop"));
  EXPECT_EQ(RawClient(supervised.port()).ask(get("/a", "", "HEAD"), true).value("X-Method"), "HEAD");
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(supervised.ask(get("/a", chunked, "POST") + "3\r\nabc\r\n0\r\n\r\n").value("X-Method"), "POST");
  EXPECT_EQ(origin.last().body, "abc");
}

TEST_F(Away, ChunksAndTheEndOfTheConnectionFrameBodies) {
  const std::string body = pattern_bytes(300'000, 1);
  origin.set_handler([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.target() == "/chunks") return void(connection.send(chunked_response("", body, 7000)));
    connection.send("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body);
    connection.close();
  });
  EXPECT_TRUE(supervised.ask(get("/chunks")).body == body);
  EXPECT_TRUE(supervised.ask(get("/until-close")).body == body);
  EXPECT_TRUE(supervised.ask("GET /chunks HTTP/1.0\r\nHost: data.example\r\n\r\n").body == body);
}

TEST_F(Away, AnAnswerThatBreaksOffIsAReset) {
  origin.set_handler([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    connection.close();
  });
  EXPECT_EQ(supervised.ask(get("/a")).end, ClientAnswer::End::kReset);
}

TEST_F(Away, OnlyConfiguredHostsAreAnswered) {
  const size_t asked = origin.count();
  EXPECT_EQ(supervised.ask("GET / HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n").status, 421);
  EXPECT_EQ(supervised.ask("GET / HTTP/1.1\r\n\r\n").status, 400);
  EXPECT_EQ(supervised
                .ask(get("/",
                         "CDN-Loop: nezha-1, nezha-2, nezha-3, nezha-4, nezha-5, nezha-6, nezha-7, "
                         "nezha-8\r\n"))
                .status,
            508);
  EXPECT_EQ(origin.count(), asked);
}

TEST_F(Away, ASecondRequestIsNeverSentToTheFirstOnesServer) {
  RawClient client(supervised.port());
  const size_t asked = origin.count();
  EXPECT_EQ(client.ask(get("/a") + "GET /secret HTTP/1.1\r\nHost: tls.example\r\n\r\n").status, 200);
  EXPECT_TRUE(client.closed_by_peer());
  EXPECT_EQ(origin.count(), asked + 1);
}

TEST_F(Away, WhatIsWrittenMeanwhileIsNotAnsweredFromBefore) {
  EXPECT_EQ(supervised.ask(get("/a", "Content-Length: 3\r\n", "PUT") + "new").status, 200);
  EXPECT_TRUE(supervised.come_back());
  const ClientAnswer answer = supervised.ask(get("/a"));
  EXPECT_EQ(answer.body, "new");
  EXPECT_EQ(answer.cache_status().find("cache-away"), std::string::npos) << "the cache itself was asked";
}

TEST_F(Away, WhatWasNotWrittenIsStillStored) {
  EXPECT_TRUE(supervised.come_back());
  EXPECT_NE(supervised.ask(get("/a")).cache_status().find("hit"), std::string::npos);
}

// The write is relayed; the cache comes back before its answer, and has what it stored from before.
TEST_F(Away, AWriteThatEndsAfterTheCacheIsBackIsDroppedThere) {
  Event arrived, answer_it;
  origin.set_handler([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.method() == "PUT") arrived.set(), answer_it.wait();
    versions(connection, request);
  });
  RawClient writer(supervised.port());
  writer.send(get("/a", "Content-Length: 3\r\n", "PUT") + "new");
  EXPECT_TRUE(arrived.wait());
  EXPECT_TRUE(supervised.come_back());
  EXPECT_EQ(supervised.ask(get("/a")).body, "old");
  answer_it.set();
  EXPECT_EQ(writer.read_answer().status, 200);
  EXPECT_EQ(supervised.ask(get("/a")).body, "new");
}

// TLS on both kinds of ports, by the cache and by the supervisor in its place; and a name that is nobody's.
class SuperviseTls : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NO_FATAL_FAILURE(supervised_.start()); }

  TlsPeer connect(uint16_t port, const std::string& name) const {
    TlsPeerOptions options;
    options.name = name;
    options.roots_pem = pki_.ca.certificate_pem;
    return TlsPeer(connect_loopback(port), options);
  }
  // What the real server of tls.example makes of "ping".
  std::string answer_by(uint16_t port) {
    std::thread server([&] {
      TlsPeer peer(Socket(::accept4(listening_.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC)),
                   pki_.leaf({"tls.example"}));
      std::string said;
      if (!peer.handshake()) return;
      peer.read_until(said, 4);
      peer.send(said + said);
      peer.goodbye();
    });
    TlsPeer client = connect(port, "tls.example");
    EXPECT_TRUE(client.handshake()) << client.failure();
    EXPECT_TRUE(client.send("ping"));
    std::string answer;
    EXPECT_EQ(client.read_until(answer, 8), TlsPeer::End::kBytes);
    server.join();
    return answer;
  }
  void expect_relayed() {
    for (const uint16_t port : {supervised_.process().tls_port(), supervised_.process().relay_port()}) {
      EXPECT_EQ(answer_by(port), "pingping");
      EXPECT_FALSE(connect(port, "elsewhere.example").handshake());
    }
  }

  TestPki pki_;
  ListeningSocket listening_ = listen_loopback();
  ScriptedOrigin origin_{[](OriginConnection& connection, const RecordedRequest&) { connection.close(); }};
  Supervised supervised_{origin_.port(), listening_.port};
};

TEST_F(SuperviseTls, IsRelayedByServerName) {
  supervised_.send_away();
  expect_relayed();
}

TEST_F(SuperviseTls, IsRelayedByTheCacheWithTheSocketsItInherited) {
  const size_t accepted = supervised_.accepted();
  expect_relayed();
  supervised_.kill_cache();
  ASSERT_TRUE(supervised_.wait_back(accepted));
  expect_relayed();
}

}  // namespace
}  // namespace nezha::test
