// The cache against a plain model: several clients do random things to a few objects whose origin keeps changing,
// breaking off and running out of room. Freshness is `revalidate`, so that the promise is simple: each answer equals,
// byte for byte, one version that was current at some moment between the start of the request and the end of the
// answer. Prints its seed; NEZHA_SEED replays the operations, NEZHA_MODEL_SECONDS lets it run longer.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "nezha/base/text.h"
#include "nezha/http/range.h"
#include "test/support/cache_under_test.h"
#include "test/support/environment.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

constexpr size_t kMiB = 1024 * 1024;
constexpr size_t kObjects = 6;
constexpr size_t kClients = 4;

// What the object is in one of its versions: everything follows from the two numbers.
struct Version {
  size_t object = 0;
  uint64_t number = 0;

  uint64_t seed() const { return object * 1'000'003 + number; }
  size_t size_bytes() const {
    static constexpr size_t kSizes[] = {0, 1, 1000, 65'536, kMiB - 1, kMiB, kMiB + 1, 2 * kMiB + 500'000};
    return kSizes[seed() % std::size(kSizes)];
  }
  std::string etag() const { return "\"" + std::to_string(object) + "-" + std::to_string(number) + "\""; }
  std::string body() const { return pattern_bytes(size_bytes(), seed()); }
};

// The model: which version each object is in, and the origin that serves it.
class Model {
 public:
  explicit Model(uint64_t seed) : random_(seed) {}

  uint64_t current(size_t object) {
    std::lock_guard lock(mutex_);
    return versions_[object];
  }
  void change(size_t object) {
    std::lock_guard lock(mutex_);
    ++versions_[object];
  }
  void serve(OriginConnection& connection, const RecordedRequest& request);

 private:
  uint64_t dice() {
    std::lock_guard lock(mutex_);
    return random_();
  }
  std::mutex mutex_;
  std::mt19937_64 random_;
  std::map<size_t, uint64_t> versions_;
};

void Model::serve(OriginConnection& connection, const RecordedRequest& request) {
  const size_t object = std::stoull(request.target().substr(1));
  if (request.method() == "PUT") {
    change(object);
    return void(connection.send(response(200, "", "")));
  }
  const Version version{object, current(object)};
  const std::string fields = "ETag: " + version.etag() + "\r\n";
  if (request.field("If-None-Match") == version.etag()) {
    return void(connection.send("HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n"));
  }
  const size_t size = version.size_bytes();
  if (request.method() == "HEAD") {
    return void(
        connection.send("HTTP/1.1 200 OK\r\n" + fields + "Content-Length: " + std::to_string(size) + "\r\n\r\n"));
  }
  std::string answer;
  const auto specs = request.has("Range") ? http::parse_range(*request.field("Range")) : std::nullopt;
  if (specs) {
    const auto range = specs->front().resolve(size);
    const std::string star = "Content-Range: bytes */" + std::to_string(size) + "\r\n";
    answer = !range ? response(416, fields + star, "")
                    : response(206, fields + "Content-Range: " + http::format_content_range(*range, size) + "\r\n",
                               version.body().substr(range->begin, range->size_bytes()));
  } else {
    answer = dice() % 2 ? response(200, fields, version.body()) : chunked_response(fields, version.body(), 100'000);
  }
  const uint64_t fate = dice() % 20;
  if (fate >= 2) return void(connection.send(answer));
  connection.send(std::string_view(answer).substr(0, dice() % answer.size()));
  fate == 0 ? connection.reset() : connection.close();
}

class Client {
 public:
  Client(Model& model, CacheUnderTest& cache, uint64_t seed) : model_(model), cache_(cache), random_(seed) {}

  void act() {
    const size_t object = random_() % kObjects;
    switch (random_() % 10) {
      case 0:
        return model_.change(object);
      case 1:
        return put(object);
      case 2:
        return press();
      case 3:
        return leave(object);
      case 4:
        return head(object);
      case 5:
        return ranged(object, std::to_string(random_() % (3 * kMiB)) + "-");
      case 6:
        return ranged(object, "-" + std::to_string(random_() % kMiB));
      case 7: {
        const uint64_t begin = random_() % (3 * kMiB);
        return ranged(object, std::to_string(begin) + "-" + std::to_string(begin + random_() % 300'000));
      }
      default:
        return whole(object);
    }
  }
  size_t checked() const { return checked_; }

 private:
  static std::string target(size_t object) { return "/" + std::to_string(object); }

  // The version an answer claims to be, which must have been current while it was under way.
  std::optional<Version> version_of(const ClientAnswer& answer, size_t object, uint64_t first) {
    const uint64_t last = model_.current(object);
    for (uint64_t number = first; number <= last; ++number) {
      if (answer.value("ETag") == Version{object, number}.etag()) return Version{object, number};
    }
    ADD_FAILURE() << "not current between " << first << " and " << last << ":\n" << answer.head;
    return std::nullopt;
  }

  // False for an answer that broke off or says that the source did: no promise about those but honesty.
  static bool is_whole(const ClientAnswer& answer) {
    EXPECT_NE(answer.end, ClientAnswer::End::kTimeout);
    EXPECT_NE(answer.end, ClientAnswer::End::kNonsense);
    return answer.complete() && answer.status != 502;
  }

  void whole(size_t object) {
    const uint64_t first = model_.current(object);
    const ClientAnswer answer = cache_.ask(get(target(object)));
    if (!is_whole(answer)) return;
    ASSERT_EQ(answer.status, 200) << answer.head;
    if (const auto version = version_of(answer, object, first)) {
      EXPECT_TRUE(answer.body == version->body()) << answer.head << answer.body.size() << " bytes";
    }
    ++checked_;
  }

  void ranged(size_t object, const std::string& range) {
    const uint64_t first = model_.current(object);
    const ClientAnswer answer = cache_.ask(get(target(object), "Range: bytes=" + range + "\r\n"));
    if (!is_whole(answer)) return;
    ++checked_;
    if (answer.status == 416) {
      const auto refused = http::parse_content_range(answer.value("Content-Range"));
      ASSERT_TRUE(refused && refused->total_bytes) << answer.head;
      return;
    }
    const auto version = version_of(answer, object, first);
    if (!version) return;
    if (answer.status == 200) {  // the source answered a conditional range with the whole new version
      EXPECT_TRUE(answer.body == version->body()) << answer.head;
      return;
    }
    ASSERT_EQ(answer.status, 206) << answer.head;
    const auto wanted = http::parse_range("bytes=" + range)->front().resolve(version->size_bytes());
    ASSERT_TRUE(wanted) << answer.head;
    EXPECT_EQ(answer.value("Content-Range"), http::format_content_range(*wanted, version->size_bytes()));
    EXPECT_TRUE(answer.body == version->body().substr(wanted->begin, wanted->size_bytes())) << answer.head;
  }

  void head(size_t object) {
    const uint64_t first = model_.current(object);
    const ClientAnswer answer = cache_.ask(get(target(object), "", "HEAD"), true);
    if (!is_whole(answer)) return;
    if (const auto version = version_of(answer, object, first)) {
      EXPECT_EQ(answer.value("Content-Length"), std::to_string(version->size_bytes())) << answer.head;
    }
    ++checked_;
  }

  void put(size_t object) { (void)cache_.ask(get(target(object), "Content-Length: 0\r\n", "PUT")); }

  // Objects nobody asks for again, to have segments reclaimed.
  void press() { (void)cache_.ask(get(target(1000 + random_() % 100'000))); }

  void leave(size_t object) {
    RawClient client = cache_.connect(4096);
    client.send(get(target(object)));
    client.read_head();
    if (random_() % 2) client.socket().reset();
  }

  Model& model_;
  CacheUnderTest& cache_;
  std::mt19937_64 random_;
  size_t checked_ = 0;
};

TEST(CacheModel, EveryAnswerWasCurrent) {
  const uint64_t seed = from_environment("NEZHA_SEED", std::random_device{}());
  const std::chrono::seconds time(from_environment("NEZHA_MODEL_SECONDS", 3));
  std::cout << "NEZHA_SEED=" << seed << std::endl;
  Model model(seed);
  ScriptedOrigin origin(
      [&](OriginConnection& connection, const RecordedRequest& request) { model.serve(connection, request); });
  CacheOptions options = with_freshness(config::Freshness::Mode::kRevalidate);
  options.tiers[0].size_bytes = 24 * kMiB;
  CacheUnderTest cache(origin.port(), options);
  const auto deadline = std::chrono::steady_clock::now() + time;
  std::atomic<size_t> checked{0};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      Client client(model, cache, seed * kClients + i);
      while (std::chrono::steady_clock::now() < deadline && !testing::Test::HasFailure()) client.act();
      checked += client.checked();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(checked, 0u);
  std::cout << checked << " answers checked, seed " << seed << ", "
            << cache.metric("nezha_cache_requests_total{result=\"revalidated\"}") << " from the store" << std::endl;
  EXPECT_LE(cache.store().fill_tier().used_bytes(), cache.store().fill_tier().size_bytes());
  EXPECT_TRUE(cache.drain(std::chrono::steady_clock::now() + std::chrono::seconds(60)));
}

}  // namespace
}  // namespace nezha::test
