// An object of 5 GiB behind a tier of 64 MiB: positions, lengths and totals that need more than 32 bits, on the wire,
// in the index and on the medium. The source makes its bytes from their places; nobody holds them all.
// NEZHA_HUGE_MIB sets how much of it is read as a whole: 5120 is every byte, which takes a while.
#include <gtest/gtest.h>

#include <cstring>

#include "nezha/base/text.h"
#include "nezha/http/range.h"
#include "test/support/cache_under_test.h"
#include "test/support/environment.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"
#include "test/support/temporary_directory.h"

namespace nezha::test {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t k4GiB = uint64_t{1} << 32;
constexpr uint64_t kTotal = 5 * 1024 * kMiB;
constexpr size_t kStepBytes = 256 * 1024;

// The bytes at these places: each word is a mixture of its own place, so that bytes of a place 4 GiB away differ.
std::string bytes_at(uint64_t begin, size_t size) {
  const uint64_t first = begin / 8;
  std::string out((size + 15) / 8 * 8, '\0');
  for (size_t i = 0; i < out.size() / 8; ++i) {
    uint64_t word = (first + i + 1) * 0x9e3779b97f4a7c15u;
    word ^= word >> 29;
    std::memcpy(out.data() + i * 8, &word, 8);
  }
  return out.substr(begin % 8, size);
}

// Whether these are the bytes from there on.
bool are_bytes_at(uint64_t begin, std::string_view bytes) { return bytes == bytes_at(begin, bytes.size()); }

std::string of_total(http::ByteRange range) {
  return "Content-Range: " + http::format_content_range(range, kTotal) + "\r\n";
}

void send_bytes(OriginConnection& connection, const std::string& head, http::ByteRange range) {
  if (!connection.send(head + "Content-Length: " + std::to_string(range.size_bytes()) + "\r\n\r\n")) return;
  for (uint64_t at = range.begin; at < range.end;) {
    const size_t size = static_cast<size_t>(std::min<uint64_t>(kStepBytes, range.end - at));
    if (!connection.send(bytes_at(at, size))) return;
    at += size;
  }
}

// Two pieces at most are asked for at once by these tests.
void send_parts(OriginConnection& connection, const std::vector<http::RangeSpec>& specs) {
  std::string body;
  for (const auto& spec : specs) {
    const auto range = spec.resolve(kTotal).value();
    body += "\r\n--cut\r\n" + of_total(range) + "\r\n" + bytes_at(range.begin, range.size_bytes());
  }
  connection.send(
      response(206, "ETag: \"v1\"\r\nContent-Type: multipart/byteranges; boundary=cut\r\n", body + "\r\n--cut--\r\n"));
}

void serve_huge(OriginConnection& connection, const RecordedRequest& request) {
  const std::string fields = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";
  const bool ranged = request.field("If-Range").value_or("\"v1\"") == "\"v1\"" && request.has("Range");
  if (request.method() == "HEAD")
    return void(
        connection.send("HTTP/1.1 200 OK\r\n" + fields + "Content-Length: " + std::to_string(kTotal) + "\r\n\r\n"));
  const auto specs = ranged ? http::parse_range(*request.field("Range")) : std::nullopt;
  if (!specs) return send_bytes(connection, "HTTP/1.1 200 OK\r\n" + fields, {0, kTotal});
  if (specs->size() > 1) return send_parts(connection, *specs);
  const auto range = specs->front().resolve(kTotal);
  if (!range)
    return void(connection.send(response(416, "Content-Range: bytes */" + std::to_string(kTotal) + "\r\n", "")));
  send_bytes(connection, "HTTP/1.1 206 Partial Content\r\n" + fields + of_total(*range), *range);
}

class HugeObject : public testing::Test {
 protected:
  HugeObject() : origin_(serve_huge) { start(); }

  // Also again, on what the tier holds.
  void start() {
    cache_.reset();
    CacheOptions options;
    options.tiers = {{config::Medium::kNvme, directory_.path(), 64 * kMiB}};
    cache_ = std::make_unique<CacheUnderTest>(origin_.port(), options);
  }
  ClientAnswer ask(const std::string& range, const std::string& fields = "") {
    return cache_->ask(get("/x", "Range: bytes=" + range + "\r\n" + fields));
  }
  // Asked until it comes from the store.
  ClientAnswer stored(const std::string& range) {
    ClientAnswer answer;
    const auto hit = [&] {
      answer = ask(range, "Cache-Control: only-if-cached\r\n");
      return answer.status == 206;
    };
    EXPECT_TRUE(eventually(hit)) << range;
    return answer;
  }
  static void expect_range(const ClientAnswer& answer, http::ByteRange range) {
    EXPECT_EQ(answer.status, 206) << answer.head;
    EXPECT_TRUE(answer.complete());
    EXPECT_EQ(answer.value("Content-Range"), http::format_content_range(range, kTotal));
    EXPECT_EQ(answer.value("Content-Length"), std::to_string(range.size_bytes()));
    EXPECT_EQ(answer.body.size(), range.size_bytes());
    EXPECT_TRUE(are_bytes_at(range.begin, answer.body)) << answer.head;
  }
  // The head of an answer with all of it, and its first megabytes. The client leaves then.
  void expect_whole(const std::string& fields, const std::string& cache_status) {
    RawClient client = cache_->connect();
    client.send(get("/x", fields));
    const ClientAnswer answer = client.read_head();
    EXPECT_EQ(answer.status, 200) << answer.head;
    EXPECT_EQ(answer.value("Content-Length"), std::to_string(kTotal));
    EXPECT_TRUE(answer.cache_status().starts_with(cache_status)) << answer.cache_status();
    const std::string bytes = client.read_bytes(4 * kMiB);
    EXPECT_EQ(bytes.size(), 4 * kMiB);
    EXPECT_TRUE(are_bytes_at(0, bytes));
    client.socket().reset();
  }

  const TemporaryDirectory directory_;
  ScriptedOrigin origin_;
  std::unique_ptr<CacheUnderTest> cache_;
};

struct Piece {
  std::string range;
  http::ByteRange bytes;
};
const Piece kPieces[] = {
    {"4294967296-4294967296", {k4GiB, k4GiB + 1}},                // the first byte that needs 33 bits
    {"4294967290-4294967305", {k4GiB - 6, k4GiB + 10}},           // across
    {"4293918720-4297064447", {k4GiB - kMiB, k4GiB + 2 * kMiB}},  // across, several pieces
    {"2147483640-2147483660", {k4GiB / 2 - 8, k4GiB / 2 + 13}},   // across 2 GiB: signed numbers
    {"4831838208-4832838208", {k4GiB + 512 * kMiB, k4GiB + 512 * kMiB + 1'000'001}},
    {"5368709119-5368709119", {kTotal - 1, kTotal}},          // the last byte
    {"5368609120-", {kTotal - 100'000, kTotal}},              // open
    {"-70000", {kTotal - 70'000, kTotal}},                    // a suffix
    {"5368709000-9999999999999999", {kTotal - 120, kTotal}},  // beyond the end
};

TEST_F(HugeObject, RangesBeyond4GiBAreStoredAndHitAlsoAfterARestart) {
  for (const auto& piece : kPieces) {
    SCOPED_TRACE(piece.range);
    expect_range(ask(piece.range), piece.bytes);
    expect_range(stored(piece.range), piece.bytes);
  }
  const size_t asked = origin_.count();
  EXPECT_GE(asked, 6u) << "not all of one kind";
  start();
  for (const auto& piece : kPieces) {
    SCOPED_TRACE(piece.range);
    const ClientAnswer hit = ask(piece.range);
    expect_range(hit, piece.bytes);
    EXPECT_TRUE(hit.cache_status().starts_with("nezha; hit")) << hit.head;
  }
  EXPECT_EQ(origin_.count(), asked);
}

TEST_F(HugeObject, PartsThatMeetAt4GiBAreOne) {
  expect_range(ask("4294867296-4294967295"), {k4GiB - 100'000, k4GiB});
  expect_range(ask("4294967296-4295067295"), {k4GiB, k4GiB + 100'000});
  expect_range(stored("4294867296-4294967295"), {k4GiB - 100'000, k4GiB});
  expect_range(stored("4294967296-4295067295"), {k4GiB, k4GiB + 100'000});
  const size_t asked = origin_.count();
  expect_range(ask("4294867300-4295067200"), {k4GiB - 99'996, k4GiB + 99'905});
  EXPECT_EQ(origin_.count(), asked);
  // 4 GiB below, nothing is stored: a position that lost its upper half would find something.
  expect_range(ask("0-9"), {0, 10});
  EXPECT_EQ(origin_.count(), asked + 1);
}

TEST_F(HugeObject, SeveralRangesBeyond4GiB) {
  const http::ByteRange first{k4GiB + 10, k4GiB + 5000}, second{kTotal - 3000, kTotal};
  const std::string wanted = "4294967306-4294972295,-3000";
  const std::string plain_first = of_total(first) + "\r\n" + bytes_at(first.begin, first.size_bytes());
  const std::string plain_second = of_total(second) + "\r\n" + bytes_at(second.begin, second.size_bytes());
  for (const std::string how : {"relayed", "stored"}) {
    const size_t before = origin_.count();
    const ClientAnswer answer = ask(wanted);
    EXPECT_EQ(answer.status, 206) << how;
    EXPECT_TRUE(answer.complete());
    EXPECT_TRUE(answer.value("Content-Type").starts_with("multipart/byteranges")) << answer.head;
    EXPECT_NE(answer.body.find(plain_first), std::string::npos) << how;
    EXPECT_NE(answer.body.find(plain_second), std::string::npos) << how;
    EXPECT_EQ(origin_.count(), before + (how == "relayed" ? 1 : 0)) << how;
    expect_range(ask("4294967296-4294987296"), {k4GiB, k4GiB + 20'001});
    expect_range(ask("5368700000-"), {5'368'700'000, kTotal});
    stored("4294967296-4294987296");
    stored("5368700000-");
  }
}

TEST_F(HugeObject, IfRange) {
  const std::string range = "4294967396-4294968395";
  const http::ByteRange bytes{k4GiB + 100, k4GiB + 1100};
  expect_range(ask(range, "If-Range: \"v1\"\r\n"), bytes);
  expect_range(stored(range), bytes);
  const size_t asked = origin_.count();
  expect_range(ask(range, "If-Range: \"v1\"\r\n"), bytes);
  EXPECT_EQ(origin_.count(), asked);
  expect_whole("Range: bytes=" + range + "\r\nIf-Range: \"v0\"\r\n", "nezha; fwd=partial");
  EXPECT_EQ(origin_.count(), asked + 1);
  expect_range(ask(range), bytes);
}

TEST_F(HugeObject, HeadsAndRefusedRangesTellTheTotal) {
  for (const bool part_is_stored : {false, true}) {
    if (part_is_stored) {
      ask("4294967396-4294968395");
      stored("4294967396-4294968395");
    }
    const ClientAnswer head = cache_->ask(get("/x", "", "HEAD"), true);
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.value("Content-Length"), std::to_string(kTotal));
    for (const std::string beyond : {"5368709120-", "5368709120-5368709999", "18446744073709551615-"}) {
      const ClientAnswer refused = ask(beyond);
      EXPECT_EQ(refused.status, 416) << beyond;
      EXPECT_EQ(refused.value("Content-Range"), "bytes */" + std::to_string(kTotal)) << beyond;
    }
  }
  expect_range(ask("4294967396-4294968395"), {k4GiB + 100, k4GiB + 1100});
}

// The tier has no room for it: it is relayed. What is stored at its beginning is not asked for again.
TEST_F(HugeObject, AllOfItIsRelayed) {
  expect_whole("", "nezha; fwd=uri-miss");
  EXPECT_TRUE(eventually([&] { return cache_->connections() == 0; }));
  expect_range(ask("0-1048575"), {0, kMiB});
  stored("0-1048575");
  expect_whole("", "nezha; fwd=partial; fwd-status=206");
  EXPECT_EQ(origin_.last().field("Range"), "bytes=1048576-");
  EXPECT_TRUE(eventually([&] { return cache_->connections() == 0; }));
  EXPECT_LE(cache_->store().fill_tier().used_bytes(), 64 * kMiB);
  expect_range(stored("0-1048575"), {0, kMiB});
}

// The last MiB is stored: the answer is relayed up to it, and ends with it.
TEST_F(HugeObject, IsReadFromItsBeginning) {
  const uint64_t read_bytes = std::min(from_environment("NEZHA_HUGE_MIB", 64) * kMiB, kTotal);
  expect_range(ask("5367660544-"), {kTotal - kMiB, kTotal});
  expect_range(stored("5367660544-"), {kTotal - kMiB, kTotal});
  RawClient client = cache_->connect();
  client.send(get("/x"));
  const ClientAnswer head = client.read_head();
  EXPECT_TRUE(head.cache_status().starts_with("nezha; fwd=partial; fwd-status=206")) << head.head;
  EXPECT_EQ(head.value("Content-Length"), std::to_string(kTotal));
  EXPECT_EQ(origin_.last().field("Range"), "bytes=0-5367660543");
  for (uint64_t at = 0; at < read_bytes; at += kMiB) {
    const std::string bytes = client.read_bytes(kMiB);
    ASSERT_EQ(bytes.size(), kMiB) << at;
    ASSERT_TRUE(are_bytes_at(at, bytes)) << at;
  }
  if (read_bytes < kTotal) return;
  EXPECT_EQ(client.ask(get("/x", "Range: bytes=0-9\r\n")).body, bytes_at(0, 10)) << "the connection goes on";
}

}  // namespace
}  // namespace nezha::test
