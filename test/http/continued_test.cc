// A stored body turns out to be damaged after its head was sent: the rest comes from the source when a strong ETag
// proves that it is the same version, and nothing but that is ever joined to what was sent.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"
#include "test/support/temporary_directory.h"

namespace nezha::test {
namespace {

constexpr size_t kMiB = 1024 * 1024;
constexpr size_t kSize = 3 * kMiB + 17;
constexpr size_t kDamagedAt = 2'600'000;
const std::string kFields = "ETag: \"v1\"\r\nCache-Control: max-age=600\r\n";

struct Span {
  size_t begin = 0, end = 0;
};

Span asked_range(const RecordedRequest& request) {
  Span out;
  const std::string range = request.field("Range").value_or("");
  if (std::sscanf(range.c_str(), "bytes=%zu-%zu", &out.begin, &out.end) != 2) return {};
  ++out.end;
  return out;
}

// The body is stored by one cache, damaged on its disk, and served by another.
class Continued : public testing::Test {
 protected:
  void store_and_damage(const std::string& fields = kFields, const std::string& request_fields = "") {
    cache_.reset();
    for (const auto& left : std::filesystem::directory_iterator(directory_.path())) std::filesystem::remove_all(left);
    origin_.set_handler([=, this](OriginConnection& connection, const RecordedRequest&) {
      connection.send(response(200, fields, body_));
    });
    {
      CacheUnderTest first(origin_.port(), options_);
      EXPECT_TRUE(first.ask(get("/x", request_fields)).complete());
      EXPECT_TRUE(first.wait_stored("/x"));
    }
    damage();
    cache_ = std::make_unique<CacheUnderTest>(origin_.port(), options_);
  }

  // What the source answers to a request for the rest, given all of what is right.
  using Rest = std::function<std::string(const Span&, const std::string& right)>;
  void answer_rest(const Rest& rest) {
    origin_.set_handler([=, this](OriginConnection& connection, const RecordedRequest& request) {
      if (request.has("If-None-Match")) return (void)connection.send("HTTP/1.1 304 Not Modified\r\n\r\n");
      if (!request.has("Range")) return (void)connection.send(response(200, kFields, body_));
      const Span span = asked_range(request);
      const std::string bytes = body_.substr(span.begin, span.end - span.begin);
      connection.send(rest(span, response(206, kFields + content_range(span), bytes)));
      if (close_) connection.close();
    });
  }
  static std::string content_range(const Span& span) {
    return "Content-Range: bytes " + std::to_string(span.begin) + "-" + std::to_string(span.end - 1) + "/" +
           std::to_string(kSize) + "\r\n";
  }
  std::string rest_of(const Span& span) const { return body_.substr(span.begin, span.end - span.begin); }

  CacheUnderTest& cache() { return *cache_; }
  double pieces_read() {
    return cache().metric("nezha_cache_tier_read_seconds_count{tier=\"nvme " + directory_.path() + "\"}");
  }
  double continued() { return cache().metric("nezha_cache_continued_answers_total"); }

  const std::string body_ = pattern_bytes(kSize, 3);
  ScriptedOrigin origin_{[](OriginConnection&, const RecordedRequest&) {}};
  bool close_ = false;

 private:
  void damage() {
    size_t changed = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory_.path())) {
      if (!file.is_regular_file()) continue;
      std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
      const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
      const size_t at = bytes.find(body_.substr(kDamagedAt, 64));
      if (at == std::string::npos) continue;
      stream.clear();
      stream.seekp(static_cast<std::streamoff>(at));
      stream.put(static_cast<char>(bytes[at] ^ 1));
      ++changed;
    }
    ASSERT_EQ(changed, 1u);
  }

  TemporaryDirectory directory_;

 protected:
  CacheOptions options_ = [this] {
    CacheOptions out;
    out.tiers = {{config::Medium::kNvme, directory_.path(), 2048ull * 1024 * 1024}};  // of pieces of 1 MiB
    return out;
  }();

 private:
  std::unique_ptr<CacheUnderTest> cache_;
};

const auto kRight = [](const Span&, const std::string& right) { return right; };

TEST_F(Continued, TheRestComesFromTheSource) {
  store_and_damage();
  answer_rest(kRight);
  const ClientAnswer answer = cache().ask(get("/x"));
  EXPECT_TRUE(answer.complete());
  EXPECT_TRUE(answer.cache_status().starts_with("nezha; hit")) << answer.cache_status();
  EXPECT_TRUE(answer.body == body_);
  ASSERT_EQ(origin_.count(), 2u);
  EXPECT_EQ(origin_.last().field("If-Match"), "\"v1\"");
  EXPECT_GT(asked_range(origin_.last()).begin, 0u) << "what was sent is not asked for again";
  EXPECT_LE(asked_range(origin_.last()).begin, kDamagedAt);
  EXPECT_EQ(asked_range(origin_.last()).end, kSize);
  EXPECT_EQ(continued(), 1);

  const ClientAnswer next = cache().ask(get("/x"));
  EXPECT_EQ(next.cache_status(), "nezha; fwd=uri-miss; stored") << "what is damaged is dropped";
  EXPECT_TRUE(next.body == body_);
}

// What is at hand is sent without ado; the rest is found damaged behind that.
TEST_F(Continued, WhenTheBeginningIsInMemory) {
  store_and_damage();
  answer_rest(kRight);
  EXPECT_TRUE(cache().ask(get("/x", "Range: bytes=0-99\r\n")).complete());
  const double read_before = pieces_read();
  EXPECT_GE(read_before, 1);
  const ClientAnswer answer = cache().ask(get("/x"));
  EXPECT_TRUE(answer.complete());
  EXPECT_TRUE(answer.body == body_);
  EXPECT_EQ(pieces_read() - read_before, 2) << "the first one was at hand";
  EXPECT_GT(asked_range(origin_.last()).begin, kMiB) << "what was sent at once is counted";
  EXPECT_EQ(continued(), 1);
}

TEST_F(Continued, OfOneRangeToItsEnd) {
  store_and_damage();
  answer_rest(kRight);
  const ClientAnswer answer = cache().ask(get("/x", "Range: bytes=100-2700000\r\n"));
  EXPECT_EQ(answer.status, 206);
  EXPECT_TRUE(answer.complete());
  EXPECT_TRUE(answer.body == body_.substr(100, 2'699'901));
  EXPECT_EQ(asked_range(origin_.last()).end, 2'700'001u);
}

TEST_F(Continued, WithTheClientsOwnCredentials) {
  const std::string mine = "Authorization: Bearer mine\r\n";
  options_.freshness = {config::Freshness::Mode::kRevalidate, std::chrono::seconds(0)};
  store_and_damage(kFields, mine);
  answer_rest(kRight);
  const ClientAnswer answer = cache().ask(get("/x", mine));
  EXPECT_TRUE(answer.complete());
  EXPECT_TRUE(answer.body == body_);
  EXPECT_TRUE(origin_.last().has("Range"));
  EXPECT_EQ(origin_.last().field("Authorization"), "Bearer mine");
  EXPECT_EQ(continued(), 1);
}

TEST_F(Continued, InChunks) {
  store_and_damage();
  answer_rest([this](const Span& span, const std::string&) {
    return "HTTP/1.1 206 Partial Content\r\n" + kFields + content_range(span) + "Transfer-Encoding: chunked\r\n\r\n" +
           chunks(rest_of(span), 50'000);
  });
  EXPECT_TRUE(cache().ask(get("/x")).body == body_);
}

TEST_F(Continued, NotWithoutAStrongTag) {
  store_and_damage("Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nCache-Control: max-age=600\r\n");
  answer_rest(kRight);
  EXPECT_EQ(cache().ask(get("/x")).end, ClientAnswer::End::kReset);
  EXPECT_EQ(origin_.count(), 1u);
  EXPECT_TRUE(cache().ask(get("/x")).body == body_);
}

TEST_F(Continued, NotWhenTheSourceMustNotBeAsked) {
  store_and_damage();
  answer_rest(kRight);
  EXPECT_EQ(cache().ask(get("/x", "Cache-Control: only-if-cached\r\n")).end, ClientAnswer::End::kReset);
  EXPECT_EQ(origin_.count(), 1u);
}

TEST_F(Continued, NothingElseIsJoined) {
  const std::string with_v2 = "ETag: \"v2\"\r\n", weak = "ETag: W/\"v1\"\r\n";
  const std::vector<std::pair<std::string, Rest>> wrong = {
      {"another version",
       [=, this](const Span& span, const std::string&) {
         return response(206, with_v2 + content_range(span), rest_of(span));
       }},
      {"a weak tag",
       [=, this](const Span& span, const std::string&) {
         return response(206, weak + content_range(span), rest_of(span));
       }},
      {"no tag",
       [this](const Span& span, const std::string&) { return response(206, content_range(span), rest_of(span)); }},
      {"all of it", [this](const Span&, const std::string&) { return response(200, kFields, body_); }},
      {"a failed condition", [](const Span&, const std::string&) { return response(412, kFields, "no"); }},
      {"an error", [](const Span&, const std::string&) { return response(503, "", "no"); }},
      {"another place",
       [this](const Span& span, const std::string&) {
         return response(206, kFields + content_range({span.begin - 1, span.end}), body_.substr(span.begin - 1));
       }},
      {"no place", [this](const Span& span, const std::string&) { return response(206, kFields, rest_of(span)); }},
      {"too little",
       [this](const Span& span, const std::string&) {
         return "HTTP/1.1 206 Partial Content\r\n" + kFields + content_range(span) +
                "Transfer-Encoding: chunked\r\n\r\n" + chunks(rest_of({span.begin, span.end - 1}), 50'000);
       }},
      {"too much",
       [this](const Span& span, const std::string&) {
         return "HTTP/1.1 206 Partial Content\r\n" + kFields + content_range(span) +
                "Transfer-Encoding: chunked\r\n\r\n" + chunks(rest_of(span) + "x", 50'000);
       }},
      {"what breaks off", [](const Span&, const std::string& right) { return right.substr(0, right.size() - 1); }},
      {"nothing", [](const Span&, const std::string&) { return std::string(); }},
  };
  close_ = true;
  for (const auto& [name, rest] : wrong) {
    SCOPED_TRACE(name);
    store_and_damage();
    answer_rest(rest);
    const ClientAnswer answer = cache().ask(get("/x"));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.end, ClientAnswer::End::kReset);
    EXPECT_TRUE(body_.starts_with(answer.body));
    EXPECT_TRUE(origin_.last().has("Range"));
    EXPECT_TRUE(cache().ask(get("/x")).body == body_) << "fetched anew";
  }
}

}  // namespace
}  // namespace nezha::test
