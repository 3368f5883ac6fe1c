// The program nezha-cache, killed with SIGKILL at random moments while clients read, overwrite and delete through it,
// again and again, and started anew on the same tiers. Freshness is `immutable`, so that nothing but the drop that a
// write causes stands between a reader and old bytes. The promise: an answer equals, byte for byte, one version that
// is not older than the last write acknowledged before the request, and not younger than the last one begun before
// its end; what breaks off is a beginning of that. Every 64 bytes of a body name their object, version and place.
// Prints its seed. NEZHA_SEED sets it, NEZHA_KILLS how often each test kills (thousands take minutes).
#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

#include "nezha/base/text.h"
#include "nezha/http/range.h"
#include "test/support/cache_process.h"
#include "test/support/environment.h"
#include "test/support/event.h"
#include "test/support/raw_client.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

constexpr size_t kWriters = 4;  // each of them the only one that writes its objects
constexpr size_t kObjects = 24;
constexpr size_t kBlockBytes = 64;
constexpr size_t kBlockDigitsEnd = 48;  // of the block's number in its line

struct Version {
  size_t object = 0;
  uint64_t number = 0;

  size_t size_bytes() const {
    static constexpr size_t kSizes[] = {1, 64, 5000, 70'000, 250'000, 600'001, 1'100'000};
    return kSizes[(object + number * 5) % std::size(kSizes)];
  }
  std::string etag() const { return "\"" + std::to_string(object) + "-" + std::to_string(number) + "\""; }
  // One line per block.
  std::string body() const {
    char line[kBlockBytes + 1];
    std::snprintf(line, sizeof line, "object %07zu version %011llu block 0000000 ..............\n", object,
                  static_cast<unsigned long long>(number));
    std::string out;
    out.reserve(size_bytes() + kBlockBytes);
    for (size_t block = 0; out.size() < size_bytes(); ++block) {
      out.append(line, kBlockBytes);
      char* digit = out.data() + out.size() - kBlockBytes + kBlockDigitsEnd;
      for (size_t left = block; left > 0; left /= 10) *--digit = static_cast<char>('0' + left % 10);
    }
    out.resize(size_bytes());
    return out;
  }
};

// What the clients know of an object. Numbers only grow; a deletion is a version, too.
struct Known {
  std::atomic<uint64_t> begun{1}, acknowledged{1};
};

// The source: the newest version of each object, and whether that is a deletion.
class Origin {
 public:
  Origin()
      : server_([this](OriginConnection& connection, const RecordedRequest& request) { serve(connection, request); }) {}
  uint16_t port() const { return server_.port(); }
  void forget_requests() { server_.forget_requests(); }

 private:
  struct State {
    uint64_t number = 1;
    bool deleted = false;
  };
  void serve(OriginConnection& connection, const RecordedRequest& request);
  void write(OriginConnection& connection, const RecordedRequest& request, size_t object);

  std::mutex mutex_;
  std::array<State, kObjects> states_;
  ScriptedOrigin server_;
};

std::string number_field(uint64_t number) { return "X-Number: " + std::to_string(number) + "\r\n"; }

// A write that arrives when a later one is done already changes nothing: its client has died with the cache.
void Origin::write(OriginConnection& connection, const RecordedRequest& request, size_t object) {
  const uint64_t number = std::stoull(request.field("X-Number").value_or("0"));
  const bool deletes = request.method() == "DELETE";
  if (!deletes && request.body != Version{object, number}.body())
    return void(connection.send(response(400, "", "not the body of this version")));
  {
    std::lock_guard lock(mutex_);
    if (number > states_[object].number) states_[object] = {number, deletes};
  }
  connection.send(response(200, number_field(number), ""));
}

void Origin::serve(OriginConnection& connection, const RecordedRequest& request) {
  const size_t object = std::stoull(request.target().substr(1));
  if (object >= kObjects) return void(connection.send(response(200, "ETag: \"x\"\r\n", std::string(200'000, 'x'))));
  if (request.method() == "PUT" || request.method() == "DELETE") return write(connection, request, object);
  State state;
  {
    std::lock_guard lock(mutex_);
    state = states_[object];
  }
  if (state.deleted) return void(connection.send(response(404, number_field(state.number), "")));
  const Version version{object, state.number};
  const std::string fields = "ETag: " + version.etag() + "\r\n" + number_field(state.number);
  const size_t size = version.size_bytes();
  if (request.method() == "HEAD") {
    const std::string length = "Content-Length: " + std::to_string(size) + "\r\n\r\n";
    return void(connection.send("HTTP/1.1 200 OK\r\n" + fields + length));
  }
  if (request.field("If-None-Match") == version.etag())
    return void(connection.send("HTTP/1.1 304 Not Modified\r\n" + fields + "\r\n"));
  const bool whole = !request.has("Range") || request.field("If-Range").value_or(version.etag()) != version.etag();
  const auto specs = whole ? std::nullopt : http::parse_range(*request.field("Range"));
  if (!specs) return void(connection.send(response(200, fields, version.body())));
  const auto range = specs->front().resolve(size);
  const std::string star = "Content-Range: bytes */" + std::to_string(size) + "\r\n";
  if (!range) return void(connection.send(response(416, fields + star, "")));
  const std::string place = "Content-Range: " + http::format_content_range(*range, size) + "\r\n";
  connection.send(response(206, fields + place, version.body().substr(range->begin, range->size_bytes())));
}

// The cache as its clients see it: sometimes there.
class Door {
 public:
  void open(uint16_t port) {
    std::lock_guard lock(mutex_);
    port_ = port;
    changed_.notify_all();
  }
  void shut() {
    std::lock_guard lock(mutex_);
    port_ = 0;
  }
  void close_for_good() {
    std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  // Waits until it is open. 0: it will not be again.
  uint16_t wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return port_ != 0 || over_; });
    return over_ ? 0 : port_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint16_t port_ = 0;
  bool over_ = false;
};

struct Shared {
  std::array<Known, kObjects> known;
  Door door;
  std::atomic<uint64_t> steps{0}, answers{0}, hits{0}, warm_answers{0}, warm_hits{0}, broken_off{0}, writes{0};
};

class Client {
 public:
  Client(Shared& shared, size_t writer, uint64_t seed) : shared_(shared), writer_(writer), random_(seed) {}

  void run() {
    while (const uint16_t port = shared_.door.wait()) {
      RawClient client(try_connect_loopback(port));
      if (!client.socket().open()) {
        std::this_thread::yield();
        continue;
      }
      while (act(client)) {
      }
      if (testing::Test::HasFailure()) return;
    }
  }

  // A GET by itself; counts whether it was answered from what a tier kept.
  void read_after_restart(RawClient& client, size_t object) {
    const uint64_t hits = shared_.hits;
    if (!read(client, object, "", false)) return;
    ++shared_.warm_answers;
    shared_.warm_hits += shared_.hits - hits;
  }

 private:
  // False when the connection is of no more use.
  bool act(RawClient& client) {
    ++shared_.steps;
    if (testing::Test::HasFailure()) return false;
    const size_t any = random_() % kObjects;
    switch (random_() % 12) {
      case 0:
      case 1:
        return write(client, own(), false);
      case 2:
        return write(client, own(), true);
      case 3:
        return read(client, any, "Range: bytes=" + std::to_string(random_() % 1'000'000) + "-\r\n", false);
      case 4:
        return read(client, any, "Range: bytes=-" + std::to_string(1 + random_() % 200'000) + "\r\n", false);
      case 5: {
        const uint64_t begin = random_() % 1'000'000;
        const std::string end = std::to_string(begin + random_() % 300'000);
        return read(client, any, "Range: bytes=" + std::to_string(begin) + "-" + end + "\r\n", false);
      }
      case 6:
        return read(client, any, "", true);
      case 7:  // what nobody asks for again, to have segments reclaimed
        return client.ask(get("/" + std::to_string(1000 + random_() % 100'000))).complete();
      default:
        return read(client, any, "", false);
    }
  }
  size_t own() { return random_() % (kObjects / kWriters) * kWriters + writer_; }

  bool write(RawClient& client, size_t object, bool deletes) {
    Known& known = shared_.known[object];
    const Version version{object, known.begun + 1};
    known.begun = version.number;
    const std::string body = deletes ? "" : version.body();
    const std::string fields = number_field(version.number) + "Content-Length: " + std::to_string(body.size()) + "\r\n";
    client.send(get("/" + std::to_string(object), fields, deletes ? "DELETE" : "PUT"));
    client.send(body);
    const ClientAnswer answer = client.read_answer();
    EXPECT_NE(answer.end, ClientAnswer::End::kTimeout);
    if (!answer.complete()) return broke_off();
    EXPECT_EQ(answer.status, 200) << answer.head << answer.body;
    if (answer.status != 200) return false;
    known.acknowledged = version.number;
    ++shared_.writes;
    return true;
  }

  bool read(RawClient& client, size_t object, const std::string& fields, bool head) {
    const uint64_t oldest = shared_.known[object].acknowledged;
    const ClientAnswer answer = client.ask(get("/" + std::to_string(object), fields, head ? "HEAD" : "GET"), head);
    const uint64_t youngest = shared_.known[object].begun;
    EXPECT_NE(answer.end, ClientAnswer::End::kTimeout);
    EXPECT_NE(answer.end, ClientAnswer::End::kNonsense);
    if (answer.status == 0) return broke_off();
    const uint64_t number = std::strtoull(answer.value("X-Number").c_str(), nullptr, 10);
    const std::string about = "object " + std::to_string(object) + ", allowed are " + std::to_string(oldest) + " to " +
                              std::to_string(youngest) + ", asked for " + fields + "\n" + answer.head;
    if (answer.status == 416) {
      check_total(answer, {object, oldest}, youngest, about);
    } else {
      EXPECT_TRUE(oldest <= number && number <= youngest) << about;
      EXPECT_TRUE(answer.status == 200 || answer.status == 206 || answer.status == 404) << about;
      if (answer.status != 404) check_bytes(answer, Version{object, number}, head, about);
    }
    if (!answer.complete()) return broke_off();
    ++shared_.answers;
    if (answer.cache_status().starts_with("nezha; hit")) ++shared_.hits;
    return true;
  }

  // A refused range tells only how long the version is.
  void check_total(const ClientAnswer& answer, Version version, uint64_t youngest, const std::string& about) {
    const auto place = http::parse_content_range(answer.value("Content-Range"));
    ASSERT_TRUE(place && place->total_bytes) << about;
    while (version.number <= youngest && version.size_bytes() != place->total_bytes) ++version.number;
    EXPECT_LE(version.number, youngest) << about;
  }

  // All of them, as far as they came.
  void check_bytes(const ClientAnswer& answer, const Version& version, bool head, const std::string& about) {
    EXPECT_EQ(answer.value("ETag"), version.etag()) << about;
    uint64_t begin = 0, size = version.size_bytes();
    if (answer.status == 206) {
      const auto place = http::parse_content_range(answer.value("Content-Range"));
      ASSERT_TRUE(place && place->range && place->total_bytes == size) << about;
      begin = place->range->begin;
      size = place->range->size_bytes();
    }
    EXPECT_EQ(answer.value("Content-Length"), std::to_string(size)) << about;
    if (head) return;
    if (answer.complete()) {
      EXPECT_EQ(answer.body.size(), size) << about;
    }
    const std::string whole = version.body();
    if (std::string_view(whole).substr(begin, answer.body.size()) == answer.body) return;
    size_t wrong = 0;
    while (wrong < answer.body.size() && begin + wrong < whole.size() && answer.body[wrong] == whole[begin + wrong])
      ++wrong;
    ADD_FAILURE() << about << "byte " << wrong
                  << " of the body and on: " << answer.body.substr(wrong / kBlockBytes * kBlockBytes, 2 * kBlockBytes);
  }

  bool broke_off() {
    ++shared_.broken_off;
    return false;
  }

  Shared& shared_;
  const size_t writer_;
  std::mt19937_64 random_;
};

// One cache after another on the tiers, and the clients of all of them.
class Killed : public testing::Test {
 protected:
  void run_kills(const std::string& tiers, std::vector<std::string> environment, uint64_t kills_by_default);

 private:
  void one_life(CacheProcess& cache, std::mt19937_64& random);

  Origin origin_;
  Shared shared_;
};

void Killed::one_life(CacheProcess& cache, std::mt19937_64& random) {
  cache.launch();
  if (random() % 16 == 0) {  // sometimes while it still reads its tiers in
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 50'000));
    EXPECT_EQ(cache.kill(), -SIGKILL) << cache.log();
    return;
  }
  ASSERT_TRUE(cache.wait_ready()) << cache.log();
  {
    RawClient client(cache.port());
    Client reader(shared_, 0, random());
    for (size_t object = 0; object < kObjects; ++object) reader.read_after_restart(client, object);
  }
  const uint64_t target = shared_.steps + random() % 200;
  shared_.door.open(cache.port());
  EXPECT_TRUE(eventually([&] { return shared_.steps >= target || HasFailure(); }));
  // Not at a step's end, but anywhere.
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 3000));
  shared_.door.shut();
  EXPECT_EQ(cache.kill(), -SIGKILL) << "it ended by itself: " << cache.log();
  origin_.forget_requests();
}

void Killed::run_kills(const std::string& tiers, std::vector<std::string> environment, uint64_t kills_by_default) {
  const uint64_t seed = from_environment("NEZHA_SEED", std::random_device{}());
  const uint64_t kills = from_environment("NEZHA_KILLS", kills_by_default);
  std::mt19937_64 random(seed);
  CacheProcess cache("cache: {memory: 64Mi, tiers: [" + tiers + "]}\n" +
                         "upstreams: [{name: data, hosts: [data.example], freshness: {mode: immutable}, endpoint: " +
                         "\"http://127.0.0.1:" + std::to_string(origin_.port()) + "\"}]\n",
                     std::move(environment));
  std::vector<std::thread> clients;
  for (size_t i = 0; i < kWriters; ++i)
    clients.emplace_back([this, i, seed] { Client(shared_, i, seed * kWriters + i).run(); });
  for (uint64_t kill = 0; kill < kills && !HasFailure(); ++kill) {
    SCOPED_TRACE("NEZHA_SEED=" + std::to_string(seed) + ", kill " + std::to_string(kill));
    one_life(cache, random);
  }
  shared_.door.close_for_good();
  for (auto& client : clients) client.join();
  std::cout << "NEZHA_SEED=" << seed << ": " << kills << " kills, " << shared_.answers << " answers checked, "
            << shared_.hits << " from the store, " << shared_.writes << " writes acknowledged, " << shared_.broken_off
            << " broken off; after restarts " << shared_.warm_answers << " read, " << shared_.warm_hits
            << " from the store" << std::endl;
  EXPECT_GT(shared_.writes, 0u);
  EXPECT_GT(shared_.broken_off, 0u);
  EXPECT_GT(shared_.warm_hits * 10, shared_.warm_answers) << "what was there is there";
}

std::string tier(const std::string& medium, const std::string& path) {
  return "{medium: " + medium + ", path: " + path + ", size: 16Mi}";
}

TEST_F(Killed, Files) {
  const TemporaryDirectory directory;
  run_kills(tier("nvme", directory.path()), {}, 25);
}

TEST_F(Killed, ForcedPersistentMemory) {
  const TemporaryDirectory shm("/dev/shm");
  run_kills(tier("pmem", shm.path()), {"PMEM_IS_PMEM_FORCE=1"}, 20);
}

TEST_F(Killed, MemoryOverPersistentMemoryOverFiles) {
  const TemporaryDirectory directory, shm("/dev/shm");
  run_kills("{medium: memory, size: 16Mi}, " + tier("pmem", shm.path()) + ", " + tier("nvme", directory.path()),
            {"PMEM_IS_PMEM_FORCE=1"}, 15);
}

}  // namespace
}  // namespace nezha::test
