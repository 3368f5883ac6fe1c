// A peer that goes silent and stays: the source at every kind of place of its answer, or while it takes a body or
// shakes hands; the client inside its head, inside its body, or while it is read to. The limits of time end it, never
// with a clean short end; connections and descriptors come back, and the next request is served. Times come by a moved
// clock: limits that are set from then on lie in the past.
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <thread>

#include "nezha/base/limits.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

constexpr size_t kMiB = 1024 * 1024;
constexpr size_t kLarge = 24 * kMiB;  // more than the kernel's buffers between two peers hold
const std::string kFresh = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";
const std::string kNoStore = "Cache-Control: no-store\r\n";
const auto kStall = limits::kBodyStallTimeout + std::chrono::seconds(1);

// Waits until the peer has closed.
void read_to_end(OriginConnection& connection) {
  for (std::string ignored; connection.read_some(ignored, kMiB);) ignored.clear();
}

struct Place {
  std::string name;
  std::string bytes;  // of a whole answer
  size_t at;          // where the source falls silent
  bool in_body = false;
};

std::vector<Place> places() {
  const std::string body = pattern_bytes(100'000, 9);
  const std::string length = response(200, kFresh, body), chunked = chunked_response(kFresh, body, 50'000);
  const std::string relayed = response(200, kNoStore, body);
  const std::string part = "HTTP/1.1 206 Partial Content\r\n" + kFresh +
                           "Content-Range: bytes 0-99999/200000\r\nContent-Length: 100000\r\n\r\n" + body;
  const size_t length_head = length.size() - body.size(), chunked_head = chunked.find("\r\n\r\n") + 4;
  const size_t chunk = std::string("c350\r\n").size();
  return {
      {"behind an interim answer", length, 0},
      {"inside the status line", length, 12},
      {"inside a field", length, 24},
      {"before the head's last LF", length, length_head - 1},
      {"behind the head", length, length_head, true},
      {"inside the body", length, length_head + 50'000, true},
      {"one byte before the end", length, length.size() - 1, true},
      {"inside a relayed body", relayed, relayed.size() - 50'000, true},
      {"inside a range", part, part.size() - 1, true},
      {"behind the head of a chunked answer", chunked, chunked_head, true},
      {"inside a chunk size", chunked, chunked_head + 2, true},
      {"behind a chunk size", chunked, chunked_head + chunk, true},
      {"inside chunk data", chunked, chunked_head + chunk + 20'000, true},
      {"behind chunk data", chunked, chunked_head + chunk + 50'000, true},
      {"inside the last chunk's size line", chunked, chunked.size() - 4, true},
      {"before the last LF", chunked, chunked.size() - 1, true},
  };
}

// All places at once, each of them with two clients: one sweep of the limits ends them all.
TEST(StalledSource, IsEndedAtEveryPlace) {
  const std::vector<Place> all = places();
  Event moved;
  std::atomic<size_t> silent{0}, released{0};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    const Place& place = all[std::stoull(request.target().substr(1))];
    const auto bytes = std::string_view(place.bytes).substr(0, place.at);
    ++silent;
    moved.wait();
    // An interim answer makes the cache set its next limit: that one, and all that follow, with the moved clock.
    connection.send("HTTP/1.1 103 Early Hints\r\n\r\n" + std::string(bytes));
    read_to_end(connection);
    ++released;
  });
  CacheUnderTest cache(origin.port());
  const size_t sockets = open_sockets();
  std::list<RawClient> clients;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string range = all[i].name == "inside a range" ? "Range: bytes=0-99999\r\n" : "";
    for (int second = 0; second < 2; ++second)
      clients.emplace_back(cache.port()).send(get("/" + std::to_string(i), range));
  }
  ASSERT_TRUE(eventually([&] { return silent >= all.size(); }));
  cache.clock().shorten_timeouts(kStall);
  moved.set();
  auto client = clients.begin();
  size_t begun = 0;  // answers of which the client has a good head
  for (size_t i = 0; i < clients.size(); ++i, ++client) {
    const Place& place = all[i / 2];
    SCOPED_TRACE(place.name);
    const ClientAnswer answer = client->read_answer();
    EXPECT_NE(answer.end, ClientAnswer::End::kTimeout);
    EXPECT_NE(answer.end, ClientAnswer::End::kNonsense);
    if (place.in_body) begun += answer.status == 200 || answer.status == 206;
    if (place.in_body)
      EXPECT_TRUE(!answer.complete() || answer.status == 504) << answer.head << answer.body.size();
    else
      EXPECT_TRUE(answer.complete() && answer.status == 504) << answer.head;
  }
  EXPECT_GT(begun, 0u) << "the limit came before every head: nothing was silent inside a body";
  clients.clear();
  EXPECT_TRUE(eventually([&] { return released == silent; })) << "connections to the source are closed";
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0; }));
  EXPECT_TRUE(eventually([&] { return open_sockets() <= sockets; })) << sockets << " -> " << open_sockets();

  cache.clock().shorten_timeouts(std::chrono::seconds(0));
  const std::string body = pattern_bytes(100'000, 10);
  origin.set_handler(
      [&](OriginConnection& connection, const RecordedRequest&) { connection.send(response(200, kFresh, body)); });
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_TRUE(cache.ask(get("/" + std::to_string(i))).body == body) << all[i].name;
  EXPECT_TRUE(cache.drain(std::chrono::steady_clock::now() + kWatchdog));
}

TEST(StalledSource, InsideItsTlsHandshake) {
  ScriptedOrigin origin([](OriginConnection&, const RecordedRequest&) {});  // reads and never answers
  CacheOptions options;
  options.tls_endpoint = true;
  CacheUnderTest cache(origin.port(), options);
  cache.clock().shorten_timeouts(limits::kConnectTimeout + std::chrono::seconds(1));
  const ClientAnswer answer = cache.ask(get("/x"));
  EXPECT_EQ(answer.status, 504);
  EXPECT_TRUE(answer.complete());
}

// It takes some of the client's body, and then no more.
TEST(StalledSource, WhileItTakesABody) {
  Event asked, moved;
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest&) {
        asked.set();
        moved.wait();
        for (std::string some; some.size() < 4 * kMiB && connection.read_some(some, kMiB);) {
        }
        // It is open and reads no more, until the cache has gone.
        EXPECT_TRUE(eventually([&] { return !connection.send("x"); }));
      },
      false);
  CacheUnderTest cache(origin.port());
  RawClient client = cache.connect();
  const std::string length = "Content-Length: " + std::to_string(kLarge) + "\r\n";
  std::thread sender([&] {
    client.send(get("/x", length, "PUT"));
    client.send(std::string(kLarge, 'x'));
  });
  ASSERT_TRUE(asked.wait());
  cache.clock().shorten_timeouts(kStall);
  moved.set();
  sender.join();
  const ClientAnswer answer = client.read_answer();
  EXPECT_NE(answer.end, ClientAnswer::End::kTimeout);
  EXPECT_TRUE(!answer.complete() || answer.status >= 500) << answer.head;
  client.socket().reset();
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0; }));
}

TEST(StalledClient, InsideItsHead) {
  ScriptedOrigin origin([](OriginConnection&, const RecordedRequest&) {});
  CacheUnderTest cache(origin.port());
  cache.clock().shorten_timeouts(limits::kHeadTimeout + std::chrono::seconds(1));
  for (const size_t bytes : {1, 10, 38}) {
    RawClient client = cache.connect();
    client.send(get("/x").substr(0, bytes));
    const ClientAnswer answer = client.read_answer();
    EXPECT_NE(answer.end, ClientAnswer::End::kTimeout) << bytes;
    EXPECT_TRUE(answer.status == 0 || answer.status == 408) << answer.head;
  }
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0; }));
  EXPECT_EQ(origin.count(), 0u);
}

TEST(StalledClient, InsideItsTlsHandshake) {
  ScriptedOrigin origin([](OriginConnection&, const RecordedRequest&) {});
  CacheUnderTest cache(origin.port());
  cache.clock().shorten_timeouts(limits::kHeadTimeout + std::chrono::seconds(1));
  for (const std::string& bytes :
       {std::string(), std::string("\x16"), std::string("\x16\x03\x01\x01\x00\x01\x00", 7)}) {
    RawClient client(cache.tls_port());
    client.send(bytes);
    EXPECT_TRUE(client.closed_by_peer()) << bytes.size();
  }
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0; }));
}

// The source must not take what came for the whole.
TEST(StalledClient, InsideItsBody) {
  for (const bool chunked : {false, true}) {
    Event asked;
    std::atomic<bool> whole{false}, cut{false};
    ScriptedOrigin origin(
        [&](OriginConnection& connection, const RecordedRequest& head) {
          asked.set();
          RecordedRequest request = head;
          whole = connection.read_body(request);
          cut = true;
        },
        false);
    CacheUnderTest cache(origin.port());
    RawClient client = cache.connect();
    client.send(get("/x", chunked ? "Transfer-Encoding: chunked\r\n" : "Content-Length: 1000\r\n", "PUT") +
                (chunked ? "10\r\nso" : "so"));
    ASSERT_TRUE(asked.wait());
    cache.clock().shorten_timeouts(kStall);
    client.send("m");
    const ClientAnswer answer = client.read_answer();
    EXPECT_NE(answer.end, ClientAnswer::End::kTimeout);
    EXPECT_TRUE(!answer.complete() || answer.status >= 400) << answer.head;
    EXPECT_TRUE(eventually([&] { return cut.load(); }));
    EXPECT_FALSE(whole);
    client.socket().reset();
    EXPECT_TRUE(eventually([&] { return cache.connections() == 0; }));
  }
}

struct Way {
  std::string name, target, fields;
};
const Way kWays[] = {{"a hit", "/stored", ""},
                     {"a range", "/stored", "Range: bytes=5-\r\n"},
                     {"several ranges", "/stored", "Range: bytes=5-12000000,13000000-\r\n"},
                     {"a relay", "/relayed", ""},
                     {"a relay in chunks", "/chunked", ""},
                     {"a download that is stored", "/new", ""}};

// It reads one byte, later some more, and then nothing.
TEST(StalledClient, WhileItIsReadTo) {
  const std::string body = pattern_bytes(kLarge, 1);
  std::atomic<size_t> released{0}, relayed{0};
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest& request) {
    const std::string target = request.target();
    if (target == "/stored" || target == "/new") return void(connection.send(response(200, kFresh, body)));
    ++relayed;
    const bool sent = connection.send(target == "/chunked" ? chunked_response(kNoStore, body, 100'000)
                                                           : response(200, kNoStore, body));
    EXPECT_FALSE(sent && connection.over());
    read_to_end(connection);
    ++released;
  });
  CacheOptions options;
  options.tiers[0].size_bytes = 128 * kMiB;
  CacheUnderTest cache(origin.port(), options);
  EXPECT_TRUE(cache.ask(get("/stored")).complete());
  ASSERT_TRUE(cache.wait_stored("/stored"));
  const size_t sockets = open_sockets();
  std::list<RawClient> clients;
  for (const auto& way : kWays) {
    RawClient& client = clients.emplace_back(connect_loopback(cache.port(), 65536));
    client.send(get(way.target, way.fields));
    EXPECT_EQ(client.read_bytes(1), "H") << way.name;
  }
  ASSERT_TRUE(cache.wait_stored("/new")) << "a download goes on without its client";
  cache.clock().shorten_timeouts(kStall);
  auto client = clients.begin();
  // As much as lets the cache go on, and find itself held up once more.
  for (size_t i = 0; i < std::size(kWays); ++i, ++client) EXPECT_GT(client->read_bytes(6 * kMiB).size(), 1000u);
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0; })) << cache.connections();
  client = clients.begin();
  for (const auto& way : kWays) {
    EXPECT_LT(client->read_bytes(2 * kLarge).size(), kLarge - 7 * kMiB) << way.name;
    ++client;
  }
  clients.clear();
  EXPECT_TRUE(eventually([&] { return relayed == 2 && released == 2; })) << "connections to the source are closed";
  cache.clock().shorten_timeouts(std::chrono::seconds(0));
  EXPECT_TRUE(cache.ask(get("/new")).body == body);
  EXPECT_EQ(origin.count(), 4u);
  origin.drop_connections();
  // An idle connection to the source may stay.
  EXPECT_TRUE(eventually([&] { return open_sockets() <= sockets + 1; })) << sockets << " -> " << open_sockets();
}

}  // namespace
}  // namespace nezha::test
