// Ranges: from the store, as misses, as stored extents and their union; two generations are never mixed.
#include "nezha/http/range.h"

#include <gtest/gtest.h>

#include "nezha/base/text.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

constexpr size_t kMiB = 1024 * 1024;

// An honest server of one object: ranges, conditions, HEAD.
class RangeOrigin {
 public:
  explicit RangeOrigin(std::string body) : body_(std::move(body)) {}
  std::string etag = "\"v1\"";
  std::string fields = "Cache-Control: max-age=600\r\nx-amz-checksum-crc32: AAAA==\r\n";

  void operator()(OriginConnection& connection, const RecordedRequest& request) const {
    const std::string head = "ETag: " + etag + "\r\n" + fields;
    const auto wanted = request.field("Range");
    const auto specs = wanted ? http::parse_range(*wanted) : std::nullopt;
    if (!specs) return void(connection.send(response(200, head, body_)));
    const auto range = specs->front().resolve(body_.size());
    if (!range) {
      connection.send(response(416, "Content-Range: bytes */" + std::to_string(body_.size()) + "\r\n", ""));
      return;
    }
    connection.send(response(206, head + "Content-Range: " + http::format_content_range(*range, body_.size()) + "\r\n",
                             body_.substr(range->begin, range->size_bytes())));
  }

 private:
  std::string body_;
};

ClientAnswer ask_range(CacheUnderTest& cache, const std::string& range, const std::string& more = "") {
  return cache.ask(get("/x", "Range: bytes=" + range + "\r\n" + more));
}

void expect_range(const ClientAnswer& answer, const std::string& body, size_t begin, size_t end) {
  EXPECT_EQ(answer.status, 206);
  EXPECT_TRUE(answer.complete());
  EXPECT_TRUE(answer.body == body.substr(begin, end - begin)) << begin << "-" << end;
  EXPECT_EQ(answer.value("Content-Range"), http::format_content_range({begin, end}, body.size()));
  EXPECT_EQ(answer.value("Content-Length"), std::to_string(end - begin));
}

TEST(RangeHit, EveryFormFromOneStoredAnswer) {
  const std::string body = pattern_bytes(3 * kMiB + 5, 1);
  const RangeOrigin server(body);
  ScriptedOrigin origin(server);
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  const size_t size = body.size();
  expect_range(ask_range(cache, "0-0"), body, 0, 1);
  expect_range(ask_range(cache, "0-"), body, 0, size);
  expect_range(ask_range(cache, "5-"), body, 5, size);
  expect_range(ask_range(cache, "-8"), body, size - 8, size);
  expect_range(ask_range(cache, "-99999999"), body, 0, size);
  expect_range(ask_range(cache, "1048575-1048576"), body, kMiB - 1, kMiB + 1);
  expect_range(ask_range(cache, "1048576-2097151"), body, kMiB, 2 * kMiB);
  expect_range(ask_range(cache, "100-99999999"), body, 100, size);
  expect_range(ask_range(cache, "3145732-"), body, size - 1, size);
  const ClientAnswer beyond = ask_range(cache, "3145733-");
  EXPECT_EQ(beyond.status, 416);
  EXPECT_EQ(beyond.value("Content-Range"), "bytes */" + std::to_string(size));
  EXPECT_EQ(ask_range(cache, "5-4").status, 200) << "a malformed Range is ignored";
  EXPECT_EQ(ask_range(cache, "0-0").has("x-amz-checksum-crc32"), false)
      << "a checksum of the whole is not one of a part";
  EXPECT_TRUE(cache.ask(get("/x")).has("x-amz-checksum-crc32"));
  EXPECT_EQ(origin.count(), 1u);
}

TEST(RangeHit, IfRange) {
  const std::string body = pattern_bytes(1000, 2);
  ScriptedOrigin origin{RangeOrigin(body)};
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  expect_range(ask_range(cache, "10-19", "If-Range: \"v1\"\r\n"), body, 10, 20);
  EXPECT_EQ(ask_range(cache, "10-19", "If-Range: \"v2\"\r\n").body, body);
  EXPECT_EQ(ask_range(cache, "10-19", "If-Range: W/\"v1\"\r\n").status, 200);
  EXPECT_EQ(origin.count(), 1u);
}

// RFC 9110 §14.6, §15.3.7.2: the parts of a multipart answer, as "begin-end/total" and bytes.
std::vector<std::pair<std::string, std::string>> parts_of(const ClientAnswer& answer) {
  const std::string type = answer.value("Content-Type"), prefix = "multipart/byteranges; boundary=";
  EXPECT_TRUE(type.starts_with(prefix)) << type;
  const std::string mark = "--" + type.substr(prefix.size());
  std::vector<std::pair<std::string, std::string>> parts;
  size_t at = 0;
  EXPECT_TRUE(answer.body.starts_with(mark));
  for (;;) {
    at += mark.size();
    if (answer.body.substr(at) == "--\r\n") return parts;
    const size_t head_end = answer.body.find("\r\n\r\n", at), next = answer.body.find("\r\n" + mark, at);
    if (head_end == std::string::npos || next == std::string::npos) break;
    const std::string head = answer.body.substr(at, head_end + 2 - at);
    EXPECT_NE(head.find("\r\nContent-Type: a/b\r\n"), std::string::npos) << head;
    const size_t range = head.find("Content-Range: bytes ") + 21;
    parts.emplace_back(head.substr(range, head.find("\r\n", range) - range),
                       answer.body.substr(head_end + 4, next - head_end - 4));
    at = next + 2;
  }
  ADD_FAILURE() << "not a multipart body: " << answer.body;
  return parts;
}

TEST(RangeHit, SeveralRangesFromOneStoredAnswer) {
  RangeOrigin stored("0123456789abcdefghij");
  stored.fields += "Content-Type: a/b\r\n";
  ScriptedOrigin origin{stored};
  CacheUnderTest cache(origin.port());
  cache.ask(get("/x"));
  ASSERT_TRUE(cache.wait_stored("/x"));
  using Parts = std::vector<std::pair<std::string, std::string>>;
  const ClientAnswer two = ask_range(cache, "15-16, 0-1");
  EXPECT_EQ(two.status, 206);
  EXPECT_FALSE(two.has("Content-Range")) << "RFC 9110 §15.3.7.2";
  EXPECT_FALSE(two.has("x-amz-checksum-crc32"));
  EXPECT_EQ(two.value("Content-Length"), std::to_string(two.body.size()));
  EXPECT_EQ(parts_of(two), (Parts{{"15-16/20", "fg"}, {"0-1/20", "01"}})) << "in the order of the request";
  EXPECT_EQ(parts_of(ask_range(cache, "0-1,-2,99-")), (Parts{{"0-1/20", "01"}, {"18-19/20", "ij"}}))
      << "what cannot be satisfied is left out";
  EXPECT_EQ(parts_of(ask_range(cache, "10-12,0-1,2-3,11-14")), (Parts{{"0-3/20", "0123"}, {"10-14/20", "abcde"}}))
      << "overlapping and touching ones are one";
  expect_range(ask_range(cache, "0-5,3-9"), "0123456789abcdefghij", 0, 10);
  expect_range(ask_range(cache, "0-,0-,0-"), "0123456789abcdefghij", 0, 20);
  expect_range(ask_range(cache, "4-5,99-"), "0123456789abcdefghij", 4, 6);
  EXPECT_EQ(ask_range(cache, "20-,99-").status, 416);
  EXPECT_EQ(ask_range(cache, "0-1,5-6", "If-Range: \"v2\"\r\n").status, 200);
  std::string many = "0-0";
  for (int i = 1; i < 200; ++i) many += ",2-2";
  EXPECT_EQ(ask_range(cache, many).status, 200) << "a list too long to be meant";
  EXPECT_EQ(origin.count(), 1u);
}

TEST(RangeHit, SeveralRangesAreTheSourcesToAnswer) {
  ScriptedOrigin origin{[](OriginConnection& connection, const RecordedRequest& request) {
    if (!request.has("Range"))
      return void(connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: max-age=9\r\n", "0123456789")));
    connection.send(response(
        206, "ETag: \"v1\"\r\nContent-Type: multipart/byteranges; boundary=b\r\nCache-Control: max-age=9\r\n", "--b"));
  }};
  CacheUnderTest cache(origin.port());
  EXPECT_EQ(ask_range(cache, "0-0,5-6").body, "--b");
  EXPECT_EQ(cache.ask(get("/x")).body, "0123456789") << "the multipart answer was not stored";
  EXPECT_EQ(origin.requests().front().field("Range"), "bytes=0-0,5-6");
}

TEST(RangeMiss, IsForwardedAsItIsAndStoredAsAnExtent) {
  const std::string body = pattern_bytes(4 * kMiB + 3, 3);
  ScriptedOrigin origin{RangeOrigin(body)};
  CacheUnderTest cache(origin.port());
  expect_range(ask_range(cache, "1000-1500000"), body, 1000, 1'500'001);
  EXPECT_EQ(origin.last().field("Range"), "bytes=1000-1500000") << "a signed Range is not widened";
  ASSERT_TRUE(eventually([&] {
    return cache.ask(get("/x", "Cache-Control: only-if-cached\r\nRange: bytes=1000-1500000\r\n")).status == 206;
  }));
  expect_range(ask_range(cache, "1000-1000"), body, 1000, 1001);
  expect_range(ask_range(cache, "1048570-1048590"), body, 1'048'570, 1'048'591);
  expect_range(ask_range(cache, "1500000-1500000"), body, 1'500'000, 1'500'001);
  EXPECT_EQ(origin.count(), 1u);
  expect_range(ask_range(cache, "999-1001"), body, 999, 1002);
  EXPECT_EQ(origin.count(), 2u) << "one byte is missing: the source is asked for exactly this range";
  EXPECT_EQ(origin.last().field("Range"), "bytes=999-1001");
}

TEST(RangeMiss, ExtentsMeetAndTheWholeIsServed) {
  const std::string body = pattern_bytes(3 * kMiB, 4);
  ScriptedOrigin origin{RangeOrigin(body)};
  CacheUnderTest cache(origin.port());
  const auto stored = [&](const std::string& range) {
    return eventually([&] {
      return cache.ask(get("/x", "Cache-Control: only-if-cached\r\nRange: bytes=" + range + "\r\n")).status == 206;
    });
  };
  // Suffix first: the length is learned from Content-Range. Then overlapping, out of order, touching.
  for (const std::string range : {"-1000000", "0-999", "500-1500000", "1500001-2300000"}) {
    ask_range(cache, range);
    ASSERT_TRUE(stored(range)) << range;
  }
  EXPECT_EQ(origin.count(), 4u);
  expect_range(ask_range(cache, "0-"), body, 0, body.size());
  const ClientAnswer whole = cache.ask(get("/x"));
  EXPECT_EQ(whole.status, 200);
  EXPECT_TRUE(whole.body == body);
  EXPECT_EQ(whole.value("Content-Length"), std::to_string(body.size()));
  EXPECT_FALSE(whole.has("Content-Range"));
  EXPECT_EQ(origin.count(), 4u);
}

TEST(RangeMiss, APartIsNeverTheWhole) {
  const std::string body = pattern_bytes(1000, 5);
  ScriptedOrigin origin{RangeOrigin(body)};
  CacheUnderTest cache(origin.port());
  ask_range(cache, "0-499");
  ASSERT_TRUE(cache.wait_stored("/x"));
  const ClientAnswer whole = cache.ask(get("/x"));
  EXPECT_EQ(whole.status, 200);
  EXPECT_TRUE(whole.body == body);
  const ClientAnswer head = cache.ask(get("/x", "", "HEAD"), true);
  EXPECT_EQ(head.value("Content-Length"), "1000");
}

TEST(RangeMiss, UpstreamsWithoutRangesAnswer200) {
  const std::string body = pattern_bytes(5000, 6);
  ScriptedOrigin origin{[&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n", body));
  }};
  CacheUnderTest cache(origin.port());
  const ClientAnswer first = ask_range(cache, "10-19");
  EXPECT_EQ(first.status, 200) << "never the whole with status 206";
  EXPECT_EQ(first.body, body);
  ASSERT_TRUE(cache.wait_stored("/x"));
  expect_range(ask_range(cache, "10-19"), body, 10, 20);
  EXPECT_EQ(origin.count(), 1u);
}

TEST(RangeMiss, OddPartialAnswers) {
  struct Odd {
    std::string why, fields;
    size_t asked = 2;  // of two requests, how many reached the source
    bool stored = false;
  };
  const Odd odds[] = {
      {"another range", "ETag: \"v1\"\r\nContent-Range: bytes 11-20/100\r\n", 2, true},
      {"no Content-Range", "ETag: \"v1\"\r\n"},
      {"broken Content-Range", "ETag: \"v1\"\r\nContent-Range: bytes 10-19\r\n"},
      {"unknown total", "ETag: \"v1\"\r\nContent-Range: bytes 10-19/*\r\n", 1, true},
      {"longer than its length", "ETag: \"v1\"\r\nContent-Range: bytes 10-18/100\r\n"},
      {"weak validator", "ETag: W/\"v1\"\r\nContent-Range: bytes 10-19/100\r\n", 1, true},
      {"no validator", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Range: bytes 10-19/100\r\n", 1, true}};
  for (const auto& odd : odds) {
    ScriptedOrigin origin{[&](OriginConnection& connection, const RecordedRequest&) {
      connection.send(response(206, odd.fields + "Cache-Control: max-age=600\r\n", "0123456789"));
    }};
    CacheUnderTest cache(origin.port());
    for (int i = 0; i < 2; ++i) {
      const ClientAnswer answer = ask_range(cache, "10-19");
      EXPECT_EQ(answer.status, 206) << odd.why;
      EXPECT_EQ(answer.body, "0123456789") << odd.why;
      if (odd.stored) {
        ASSERT_TRUE(cache.wait_stored("/x")) << odd.why;
      }
    }
    EXPECT_EQ(origin.count(), odd.asked) << odd.why;
    EXPECT_EQ(cache.store().generation_count(), odd.stored ? 1u : 0u) << odd.why;
  }
}

// RFC 9110 §14.4: of a representation of unknown length, what lies between two numbers can be answered.
TEST(RangeMiss, UnknownTotal) {
  ScriptedOrigin origin{[](OriginConnection& connection, const RecordedRequest&) {
    connection.send(
        response(206, "ETag: \"v1\"\r\nCache-Control: max-age=9\r\nContent-Range: bytes 10-19/*\r\n", "0123456789"));
  }};
  CacheUnderTest cache(origin.port());
  ask_range(cache, "10-19");
  ASSERT_TRUE(cache.wait_stored("/x"));
  const ClientAnswer inside = ask_range(cache, "12-13");
  EXPECT_EQ(inside.status, 206);
  EXPECT_EQ(inside.body, "23");
  EXPECT_EQ(inside.value("Content-Range"), "bytes 12-13/*");
  EXPECT_EQ(origin.count(), 1u);
  for (const std::string range : {"12-", "-1", "12-20", "9-12"}) {
    ask_range(cache, range);
    EXPECT_EQ(origin.last().field("Range"), "bytes=" + range) << "asked as the client wrote it";
  }
  EXPECT_EQ(origin.count(), 5u);
}

struct Completing {
  std::string name, stored;  // ranges that were asked before
  std::string asked;         // of the source, when all is asked
};

// RFC 9111 §3.3, §3.4: only what is missing is asked for, and the whole is answered.
TEST(Completion, AsksForTheRestOnly) {
  const std::string body = pattern_bytes(3 * kMiB, 5);
  const Completing cases[] = {{"the end", "0-1999999", "bytes=2000000-"},
                              {"the beginning", "2000000-", "bytes=0-1999999"},
                              {"the middle", "0-999,3000000-", "bytes=1000-2999999"},
                              {"both ends", "1000000-2000000", ""}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    ScriptedOrigin origin{RangeOrigin(body)};
    CacheUnderTest cache(origin.port());
    size_t asked = 0;
    for (const auto range : split(c.stored, ',')) {
      ask_range(cache, std::string(range));
      ++asked;
      ASSERT_TRUE(eventually([&] {
        return cache.ask(get("/x", "Cache-Control: only-if-cached\r\nRange: bytes=" + std::string(range) + "\r\n"))
                   .status == 206;
      }));
    }
    const ClientAnswer whole = cache.ask(get("/x"));
    EXPECT_EQ(whole.status, 200);
    EXPECT_TRUE(whole.body == body);
    EXPECT_EQ(origin.count(), asked + 1);
    EXPECT_EQ(origin.last().field("Range").value_or(""), c.asked);
    if (!c.asked.empty()) {
      EXPECT_EQ(origin.last().field("If-Range"), "\"v1\"");
      EXPECT_EQ(whole.cache_status(), "nezha; fwd=partial; fwd-status=206; stored");
    }
    ASSERT_TRUE(eventually(
        [&] { return cache.ask(get("/x", "Cache-Control: only-if-cached\r\n")).body.size() == body.size(); }));
    EXPECT_TRUE(cache.ask(get("/x")).body == body);
    EXPECT_EQ(origin.count(), asked + 1);
  }
}

// Whatever the source makes of it, the client gets one version, whole.
TEST(Completion, NeverMixesVersions) {
  struct Odd {
    std::string why, fields;
    int status;
    std::string body;
    size_t asked;
  };
  const std::string part = "Content-Range: bytes 4-9/10\r\n";
  const Odd odds[] = {{"another version, whole", "ETag: \"v2\"\r\n", 200, "ABCDEFGHIJ", 1},
                      {"another version, part", "ETag: \"v2\"\r\n" + part, 206, "EFGHIJ", 2},
                      {"no tag", part, 206, "EFGHIJ", 2},
                      {"a weak tag", "ETag: W/\"v1\"\r\n" + part, 206, "EFGHIJ", 2},
                      {"another range", "ETag: \"v1\"\r\nContent-Range: bytes 5-9/10\r\n", 206, "FGHIJ", 2},
                      {"another total", "ETag: \"v1\"\r\nContent-Range: bytes 4-9/11\r\n", 206, "EFGHIJ", 2},
                      {"no such range", "Content-Range: bytes */4\r\n", 416, "", 2},
                      {"gone", "", 404, "", 2}};
  for (const auto& odd : odds) {
    SCOPED_TRACE(odd.why);
    size_t plain = 0, ranged = 0;
    ScriptedOrigin origin{[&](OriginConnection& connection, const RecordedRequest& request) {
      if (request.field("Range") == "bytes=0-3")
        return void(connection.send(
            response(206, "ETag: \"v1\"\r\nCache-Control: max-age=9\r\nContent-Range: bytes 0-3/10\r\n", "0123")));
      ++(request.has("Range") ? ranged : plain);
      if (request.has("Range"))
        connection.send(response(odd.status, odd.fields, odd.body));
      else
        connection.send(response(200, "ETag: \"v2\"\r\n", "ABCDEFGHIJ"));
    }};
    CacheUnderTest cache(origin.port());
    ask_range(cache, "0-3");
    ASSERT_TRUE(cache.wait_stored("/x"));
    const ClientAnswer whole = cache.ask(get("/x"));
    EXPECT_EQ(whole.status, 200);
    EXPECT_EQ(whole.body, "ABCDEFGHIJ");
    EXPECT_EQ(ranged, 1u);
    EXPECT_EQ(ranged + plain, odd.asked);
  }
}

// The object is overwritten while the rest is asked for: what was stored of it is gone, and nothing is left to
// complete.
TEST(Completion, OvertakenByAWriteAsksForAllOfIt) {
  Event asked, written;
  const std::string old_body = "0123456789", new_body = "ABCDEFGHIJ";
  ScriptedOrigin origin{
      [&, old_server = RangeOrigin(old_body)](OriginConnection& connection, const RecordedRequest& request) {
        if (request.method() == "PUT") return void(connection.send(response(200, "", "")));
        if (!request.has("Range")) return void(connection.send(response(200, "ETag: \"v2\"\r\n", new_body)));
        if (request.has("If-Range")) {
          asked.set();
          written.wait();
        }
        old_server(connection, request);
      }};
  CacheUnderTest cache(origin.port());
  ask_range(cache, "0-3");
  ASSERT_TRUE(cache.wait_stored("/x"));
  RawClient reader = cache.connect();
  reader.send(get("/x"));
  ASSERT_TRUE(asked.wait());
  EXPECT_EQ(cache.ask(get("/x", "Content-Length: 0\r\n", "PUT")).status, 200);
  written.set();
  const ClientAnswer whole = reader.read_answer();
  EXPECT_EQ(whole.status, 200) << whole.head;
  EXPECT_EQ(whole.body, new_body);
}

// A signature may cover everything: such a request is never turned into another.
TEST(Completion, IsNotForRequestsWithCredentials) {
  ScriptedOrigin origin{RangeOrigin("0123456789")};
  CacheUnderTest cache(origin.port());
  ask_range(cache, "0-3");
  ASSERT_TRUE(cache.wait_stored("/x"));
  EXPECT_EQ(cache.ask(get("/x", "Authorization: a\r\n")).body, "0123456789");
  EXPECT_FALSE(origin.last().has("Range"));
}

TEST(RangeMiss, UnaskedPartialIsNotTheWhole) {
  ScriptedOrigin origin{[&](OriginConnection& connection, const RecordedRequest&) {
    connection.send(
        response(206, "ETag: \"v1\"\r\nCache-Control: max-age=600\r\nContent-Range: bytes 0-4/10\r\n", "01234"));
  }};
  CacheUnderTest cache(origin.port());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(cache.ask(get("/x")).status, 206);
  EXPECT_EQ(origin.count(), 2u);
}

TEST(Generations, AreNeverMixed) {
  const std::string old_body = pattern_bytes(2000, 7), new_body = pattern_bytes(2000, 8);
  RangeOrigin old_server(old_body), new_server(new_body);
  new_server.etag = "\"v2\"";
  ScriptedOrigin origin{old_server};
  CacheUnderTest cache(origin.port());
  expect_range(ask_range(cache, "0-999"), old_body, 0, 1000);
  ASSERT_TRUE(cache.wait_stored("/x"));
  origin.set_handler(new_server);
  expect_range(ask_range(cache, "1000-1999"), new_body, 1000, 2000);
  ASSERT_TRUE(eventually([&] {
    return cache.ask(get("/x", "Cache-Control: only-if-cached\r\nRange: bytes=1000-1999\r\n")).status == 206;
  }));
  const ClientAnswer whole = cache.ask(get("/x"));
  EXPECT_TRUE(whole.body == new_body);
  expect_range(ask_range(cache, "0-999"), new_body, 0, 1000);
}

TEST(Generations, ALengthThatChangesUnderOneTagIsAnotherGeneration) {
  const std::string small = pattern_bytes(1000, 9), large = pattern_bytes(2000, 10);
  ScriptedOrigin origin{RangeOrigin(small)};
  CacheUnderTest cache(origin.port());
  ask_range(cache, "0-499");
  ASSERT_TRUE(cache.wait_stored("/x"));
  origin.set_handler(RangeOrigin(large));
  expect_range(ask_range(cache, "500-1999"), large, 500, 2000);
  ASSERT_TRUE(eventually([&] {
    return cache.ask(get("/x", "Cache-Control: only-if-cached\r\nRange: bytes=500-1999\r\n")).status == 206;
  }));
  EXPECT_TRUE(cache.ask(get("/x")).body == large);
}

TEST(Revalidation, OfARangeServesLocalBytesOn304) {
  const std::string body = pattern_bytes(2000, 11);
  ScriptedOrigin origin{[server = RangeOrigin(body)](OriginConnection& connection, const RecordedRequest& request) {
    if (request.field("If-None-Match") == server.etag)
      return void(connection.send("HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\n\r\n"));
    server(connection, request);
  }};
  CacheUnderTest cache(origin.port(), with_freshness(config::Freshness::Mode::kRevalidate));
  expect_range(ask_range(cache, "100-199"), body, 100, 200);
  ASSERT_TRUE(cache.wait_stored("/x"));
  const ClientAnswer again = ask_range(cache, "120-129");
  expect_range(again, body, 120, 130);
  EXPECT_EQ(again.cache_status(), "nezha; fwd=stale; fwd-status=304");
  EXPECT_EQ(origin.last().field("Range"), "bytes=120-129");
  EXPECT_EQ(origin.last().field("If-None-Match"), "\"v1\"");
}

}  // namespace
}  // namespace nezha::test
