// The table of request heads through the running proxy, at several fragment sizes: what is refused is never forwarded.
#include <gtest/gtest.h>

#include <atomic>

#include "nezha/base/limits.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/request_cases.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

ScriptedOrigin::Handler answer_ok() {
  return [](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "Cache-Control: no-store\r\n", "ok"));
  };
}

std::string body_for(const RequestCase& c) {
  if (c.framing.kind == http::Framing::Kind::kChunked) return "5;ext=1\r\nhello\r\n0\r\nTrailer: x\r\n\r\n";
  return std::string(static_cast<size_t>(c.framing.length_bytes), 'b');
}

TEST(Framing, TheTableThroughTheProxy) {
  ScriptedOrigin origin(answer_ok());
  CacheUnderTest cache(origin.port());
  size_t forwarded = 0;
  for (const auto& wanted : request_cases()) {
    for (const size_t fragment : {size_t{1}, size_t{3}, size_t{17}, size_t{1'000'000}}) {
      if (wanted.bytes.size() > 4096 && fragment < 1000) continue;
      SCOPED_TRACE(wanted.name + ", fragments of " + std::to_string(fragment));
      RawClient client = cache.connect();
      client.socket().send_fragmented(wanted.bytes + (wanted.status == 0 ? body_for(wanted) : ""), fragment);
      const ClientAnswer answer = client.read_answer();
      if (wanted.status == 0 && wanted.served) {
        EXPECT_EQ(answer.status, 200);
        ++forwarded;
        EXPECT_TRUE(wanted.keep_alive || client.closed_by_peer());
      } else {
        EXPECT_TRUE(wanted.status == 0 || answer.status == wanted.status) << answer.status;
        EXPECT_GE(answer.status, 400);
        EXPECT_TRUE(answer.complete());
        const bool closes = answer.value("Connection") == "close";
        EXPECT_TRUE(closes || wanted.status == 0) << "where the next request begins cannot be known";
        EXPECT_TRUE(!closes || client.closed_by_peer());
      }
      ASSERT_EQ(origin.count(), forwarded);
      if (HasFailure()) break;
    }
  }
}

TEST(Framing, ABodyOfARefusedRequestIsNotTheNextRequest) {
  ScriptedOrigin origin(answer_ok());
  CacheUnderTest cache(origin.port());
  const std::string hidden = "GET /hidden HTTP/1.1\r\nHost: data.example\r\n\r\n";
  const std::vector<std::string> smuggling = {
      "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n", "Transfer-Encoding: xchunked\r\n",
      "Content-Length: 0\r\nContent-Length: " + std::to_string(hidden.size()) + "\r\n",
      "Transfer-Encoding : chunked\r\n"};
  for (const std::string& fields : smuggling) {
    RawClient client = cache.connect();
    client.send("POST /x HTTP/1.1\r\nHost: data.example\r\n" + fields + "\r\n0\r\n\r\n" + hidden);
    EXPECT_EQ(client.read_answer().status, 400) << fields;
    EXPECT_TRUE(client.closed_by_peer()) << fields;
  }
  EXPECT_EQ(origin.count(), 0u);
}

struct ChunkedBody {
  std::string bytes;
  bool good;
};

TEST(Framing, BrokenChunkedUploadsNeverLookWhole) {
  std::atomic<size_t> whole{0};
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest& head) {
        RecordedRequest request = head;
        if (!connection.read_body(request)) return connection.close();
        ++whole;
        connection.send(response(200, "", request.body));
      },
      false);
  CacheUnderTest cache(origin.port());
  const std::vector<ChunkedBody> bodies = {{"5\r\nhello\r\n0\r\n\r\n", true},
                                           {"5;a=\"b\"\r\nhello\r\n0\r\nT: v\r\n\r\n", true},
                                           {"5;a\nb\r\nhello\r\n0\r\n\r\n", false},
                                           {"5\r\nhello\n0\r\n\r\n", false},
                                           {"5\r\nhelloworld\r\n0\r\n\r\n", false},
                                           {"5\r\nhello\r\n-1\r\n\r\n", false},
                                           {"5\r\nhello\r\nFFFFFFFFFFFFFFFFF\r\n", false},
                                           {"5\r\nhello\r\n;\r\n", false},
                                           {"5 \r\nhello\r\n0\r\n\r\n", false}};
  for (const auto& body : bodies) {
    for (const size_t fragment : {1u, 4u, 1000u}) {
      const size_t before = whole;
      RawClient client = cache.connect();
      client.send("PUT /x HTTP/1.1\r\nHost: data.example\r\nTransfer-Encoding: chunked\r\n\r\n");
      client.socket().send_fragmented(body.bytes, fragment);
      const ClientAnswer answer = client.read_answer();
      EXPECT_EQ(whole - before, body.good ? 1u : 0u) << body.bytes;
      EXPECT_EQ(answer.status, body.good ? 200 : 400) << body.bytes;
      EXPECT_EQ(answer.body == "hello", body.good) << body.bytes;
    }
  }
}

TEST(Framing, AnUploadThatBreaksOffNeverLooksWhole) {
  std::atomic<size_t> whole{0}, broken{0};
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest& head) {
        RecordedRequest request = head;
        if (connection.read_body(request))
          ++whole;
        else
          ++broken;
        connection.close();
      },
      false);
  CacheUnderTest cache(origin.port());
  const std::pair<std::string, std::string> uploads[] = {{"Content-Length: 10", "123456789"},
                                                         {"Transfer-Encoding: chunked", "5\r\nhello\r\n"},
                                                         {"Transfer-Encoding: chunked", "5\r\nhello\r\n0\r\n"},
                                                         {"Transfer-Encoding: chunked", "5\r\nhel"}};
  size_t sent = 0;
  for (const auto& [framing, bytes] : uploads) {
    for (const bool reset : {false, true}) {
      RawClient client = cache.connect();
      client.send("PUT /x HTTP/1.1\r\nHost: data.example\r\n" + framing + "\r\n\r\n" + bytes);
      ASSERT_TRUE(origin.wait_for_count(++sent));
      if (reset)
        client.socket().reset();
      else
        client.socket().close();
    }
  }
  EXPECT_TRUE(eventually([&] { return broken == sent; }));
  EXPECT_EQ(whole, 0u);
}

TEST(Framing, ABadHeadBehindAGoodRequestIsRefusedToo) {
  ScriptedOrigin origin(answer_ok());
  CacheUnderTest cache(origin.port());
  for (const std::string bad : {"GET /x HTTP/1.1\r\n\r\n", "\x16\x03\x01\r\n\r\n", "GET /x HTTP/3.0\r\n\r\n"}) {
    for (const bool pipelined : {false, true}) {
      RawClient client = cache.connect();
      client.send(get("/x") + (pipelined ? bad : ""));
      EXPECT_EQ(client.read_answer().status, 200);
      if (!pipelined) client.send(bad);
      const ClientAnswer answer = client.read_answer();
      EXPECT_GE(answer.status, 400);
      EXPECT_EQ(answer.value("Connection"), "close");
      EXPECT_TRUE(client.closed_by_peer());
    }
  }
}

TEST(Framing, TooManyEmptyLinesAreRefused) {
  ScriptedOrigin origin(answer_ok());
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  EXPECT_EQ(client.ask("\r\n\r\n\r\n\r\n\r\n" + get("/x")).status, 400);
  EXPECT_EQ(origin.count(), 0u);
}

}  // namespace
}  // namespace nezha::test
