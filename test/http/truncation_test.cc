// The upstream's body breaks off at every kind of place, by an orderly end and by a reset: the client never sees a
// clean complete end, nothing is stored, and the next request fetches anew and succeeds (RFC 9112 §8).
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

const std::string kFields = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";

struct Cut {
  std::string name;
  std::string bytes;  // of a whole answer
  size_t at;          // where it breaks off
};

// A large body, so that head and beginning reach the client before the end is known to be missing.
std::vector<Cut> cuts() {
  const std::string body = pattern_bytes(200'000, 9);
  const std::string length = response(200, kFields, body), chunked = chunked_response(kFields, body, 50'000);
  const size_t length_head = length.size() - body.size(), chunked_head = chunked.find("\r\n\r\n") + 4;
  const std::string chunk = "c350\r\n";
  const size_t chunk_bytes = chunk.size() + 50'000 + 2;
  return {
      {"before the first byte", length, 0},
      {"inside the status line", length, 12},
      {"inside a field name", length, 24},
      {"before the head's last CRLF", length, length_head - 2},
      {"before the head's last LF", length, length_head - 1},
      {"behind the head", length, length_head},
      {"one byte of the body", length, length_head + 1},
      {"in the middle of the body", length, length_head + 100'000},
      {"one byte short", length, length.size() - 1},
      {"behind the head of a chunked answer", chunked, chunked_head},
      {"inside the first chunk size", chunked, chunked_head + 2},
      {"before the LF of a chunk size", chunked, chunked_head + chunk.size() - 1},
      {"behind a chunk size", chunked, chunked_head + chunk.size()},
      {"inside chunk data", chunked, chunked_head + chunk.size() + 20'000},
      {"behind chunk data", chunked, chunked_head + chunk_bytes - 2},
      {"between CR and LF behind chunk data", chunked, chunked_head + chunk_bytes - 1},
      {"between chunks", chunked, chunked_head + chunk_bytes},
      {"inside the second chunk size", chunked, chunked_head + chunk_bytes + 3},
      {"without the last chunk", chunked, chunked.size() - 5},
      {"inside the last chunk's size line", chunked, chunked.size() - 4},
      {"before the last CRLF", chunked, chunked.size() - 2},
      {"before the last LF", chunked, chunked.size() - 1},
  };
}

class Truncation : public testing::TestWithParam<std::tuple<size_t, bool, size_t>> {};

TEST_P(Truncation, IsNeverACleanEnd) {
  const auto [index, reset, clients] = GetParam();
  const Cut cut = cuts()[index];
  SCOPED_TRACE(cut.name + (reset ? ", reset" : ", ended"));
  ScriptedOrigin origin([&, reset = reset](OriginConnection& connection, const RecordedRequest&) {
    connection.send(std::string_view(cut.bytes).substr(0, cut.at));
    if (reset)
      connection.reset();
    else
      connection.close();
  });
  CacheUnderTest cache(origin.port());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < clients; ++i) {
    threads.emplace_back([&cache, name = cut.name] {
      const ClientAnswer answer = cache.ask(get("/x"));
      EXPECT_TRUE(!answer.complete() || answer.status == 502) << name << ": " << answer.head;
      EXPECT_NE(answer.end, ClientAnswer::End::kTimeout);
    });
  }
  for (auto& thread : threads) thread.join();

  const std::string body = pattern_bytes(200'000, 10);
  origin.set_handler(
      [&](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kFields, body)); });
  const size_t before = origin.count();
  const ClientAnswer next = cache.ask(get("/x"));
  EXPECT_TRUE(next.complete());
  EXPECT_TRUE(next.body == body);
  const bool by_length = cut.bytes.find("Content-Length") != std::string::npos;
  // Whole pieces of an announced length under a strong ETag are kept, of anything else nothing.
  const std::string status(next.cache_status());
  EXPECT_TRUE(status == "nezha; fwd=uri-miss; stored" || (status.starts_with("nezha; fwd=partial") && by_length))
      << status;
  EXPECT_EQ(origin.count(), before + 1);
}

INSTANTIATE_TEST_SUITE_P(EveryPlace, Truncation,
                         testing::Combine(testing::Range<size_t>(0, 22), testing::Bool(), testing::Values(1u, 3u)));

TEST(TruncationTable, IsWhole) { EXPECT_EQ(cuts().size(), 22u); }

TEST(Truncation206, StoresNoExtent) {
  const std::string body = pattern_bytes(100'000, 1);
  std::atomic<bool> cut{true};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    const std::string whole = "HTTP/1.1 206 Partial Content\r\n" + kFields +
                              "Content-Range: bytes 0-99999/200000\r\nContent-Length: 100000\r\n\r\n" + body;
    connection.send(std::string_view(whole).substr(0, cut ? whole.size() - 1 : whole.size()));
    if (cut) connection.close();
  });
  CacheUnderTest cache(origin.port());
  EXPECT_FALSE(cache.ask(get("/x", "Range: bytes=0-99999\r\n")).complete());
  cut = false;
  const ClientAnswer next = cache.ask(get("/x", "Range: bytes=0-99999\r\n"));
  EXPECT_TRUE(next.body == body);
  EXPECT_EQ(origin.count(), 2u);
}

TEST(OverLongBodies, TheRestIsNobodysAnswer) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    connection.send(response(200, kFields, "hello of " + request.target()) +
                    "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil");
  });
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  for (int i = 0; i < 20; ++i) {
    const std::string target = "/" + std::to_string(i);
    EXPECT_EQ(client.ask(get(target)).body, "hello of " + target);
  }
}

struct Late {
  std::string name;
  std::string request;
  std::string answer;
};

class LateSurplus : public testing::TestWithParam<Late> {};

// The surplus comes when its connection rests in the pool.
TEST_P(LateSurplus, IsNobodysAnswer) {
  const Late& late = GetParam();
  Event answered, sent;
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.target() != "/first") return (void)connection.send(response(200, kFields, "of " + request.target()));
    connection.send(late.answer);
    EXPECT_TRUE(answered.wait());
    connection.send(response(200, kFields, "evil"));
    sent.set();
  });
  CacheOptions options;
  options.loops = 1;
  CacheUnderTest cache(origin.port(), options);
  const bool to_head = late.request.starts_with("HEAD");
  EXPECT_TRUE(cache.ask(late.request, to_head).complete());
  answered.set();
  ASSERT_TRUE(sent.wait());
  EXPECT_EQ(cache.ask(get("/second")).body, "of /second");
  EXPECT_NE(origin.last().connection, 0u);
}

INSTANTIATE_TEST_SUITE_P(EveryFraming, LateSurplus,
                         testing::Values(Late{"Stored", get("/first"), response(200, kFields, "hello")},
                                         Late{"Relayed", get("/first"),
                                              response(200, "Cache-Control: no-store\r\n", "hello")},
                                         Late{"Chunked", get("/first"), chunked_response(kFields, "hello", 2)},
                                         Late{"NoContent", get("/first"), "HTTP/1.1 204 No Content\r\n\r\n"},
                                         Late{"Head", "HEAD /first HTTP/1.1\r\nHost: data.example\r\n\r\n",
                                              "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"}),
                         [](const auto& made) { return made.param.name; });

// It comes so late that the next request is on its way already: what is no HTTP is not that one's answer.
TEST(OverLongBodies, ARestThatIsNoHttpCostsTheConnectionOnly) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    if (request.target() == "/second" && request.connection == 0) connection.send("more of the first body\r\n\r\n");
    connection.send(response(200, kFields, "of " + request.target()));
  });
  CacheOptions options;
  options.loops = 1;
  CacheUnderTest cache(origin.port(), options);
  EXPECT_EQ(cache.ask(get("/first")).body, "of /first");
  EXPECT_EQ(cache.ask(get("/second")).body, "of /second");
  EXPECT_EQ(origin.last().connection, 1u);
}

// What fails for any other reason is not asked twice, and no interim answer is seen twice.
TEST(UsedConnections, AreNoReasonToRepeatWhatFailsOtherwise) {
  const std::string kHint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
  std::string endless;
  for (int i = 0; i < 1100; ++i) endless += kHint;
  struct Way {
    std::string name, request, answer;
    size_t interims;
  };
  const Way ways[] = {
      {"another protocol", get("/second"), "HTTP/1.1 101 Switching Protocols\r\n\r\n", 0},
      {"interims without end", get("/second"), endless, 1000},
      {"nonsense behind an interim", get("/second"), kHint + "no HTTP\r\n\r\n", 1},
      {"the client's own mistake", get("/second", "Transfer-Encoding: chunked\r\n", "PUT") + "no size\r\n", "", 0}};
  for (const Way& way : ways) {
    SCOPED_TRACE(way.name);
    ScriptedOrigin origin(
        [&](OriginConnection& connection, const RecordedRequest& request) {
          connection.send(request.target() == "/first" ? response(200, kFields, "good") : way.answer);
        },
        false);
    CacheOptions options;
    options.loops = 1;
    CacheUnderTest cache(origin.port(), options);
    EXPECT_TRUE(cache.ask(get("/first")).complete());
    const ClientAnswer answer = cache.ask(way.request);
    EXPECT_GE(answer.status, 400);
    EXPECT_EQ(answer.interims.size(), way.interims);
    // The client may have its answer before the source has read the request.
    EXPECT_TRUE(eventually([&] { return origin.count() >= 2; }));
    EXPECT_EQ(origin.count(), 2u);
  }
}

TEST(OverLongBodies, ARangeLongerThanItsHeadIsNoRange) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send("HTTP/1.1 206 Partial Content\r\n" + kFields +
                    "Content-Range: bytes 0-4/100\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks("hello world", 3));
  });
  CacheUnderTest cache(origin.port());
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(cache.ask(get("/x", "Range: bytes=0-4\r\n")).complete());
  EXPECT_EQ(origin.count(), 2u);
}

TEST(OverLongBodies, AShortChunkedRangeIsNoRange) {
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    connection.send("HTTP/1.1 206 Partial Content\r\n" + kFields +
                    "Content-Range: bytes 0-4/100\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks("hel", 3));
  });
  CacheUnderTest cache(origin.port());
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(cache.ask(get("/x", "Range: bytes=0-4\r\n")).complete());
  EXPECT_EQ(origin.count(), 2u);
}

TEST(NotHttp, IsABadGateway) {
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest&) { connection.close(); });
  CacheUnderTest cache(origin.port());
  for (const std::string bytes :
       {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 200 OK\nContent-Length: 1\n\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nx", "HTTP/1.1 101 Switching\r\n\r\n"}) {
    origin.set_handler([bytes](OriginConnection& connection, const RecordedRequest&) {
      connection.send(bytes);
      connection.close();
    });
    const ClientAnswer got = cache.ask(get("/x"));
    EXPECT_EQ(got.status, 502) << bytes;
    EXPECT_TRUE(got.complete());
  }
}

}  // namespace
}  // namespace nezha::test
