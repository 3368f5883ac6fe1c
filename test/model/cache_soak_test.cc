// The program nezha-cache under clients that break off, ten thousand of them: inside the head, inside the body of a
// miss, a hit, a range, a relay and a PUT, while they wait for another's download, and inside a TLS handshake.
// Afterwards it holds what it held before: no connection, no descriptor, no memory, nothing under way.
// Prints its seed. NEZHA_SEED sets it, NEZHA_ABORTS how many clients there are.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iostream>
#include <mutex>
#include <random>
#include <thread>

#include "test/support/cache_process.h"
#include "test/support/environment.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"
#include "test/support/tls_peer.h"

namespace nezha::test {
namespace {

constexpr size_t kThreads = 8;
constexpr size_t kWarmHits = 8;
constexpr size_t kBodyBytes = 300'000;
// How much more memory it may hold after the second half of the clients than after the first: the allocator's arenas
// and the pools of pieces breathe by about half of this. A leak of 5 kB for each client is more.
constexpr uint64_t kAllowanceBytes = 24 * 1024 * 1024;
// Sanitizers keep what is freed for a while; they find leaks by themselves when the program ends.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMemoryIsTelling = false;
#elif defined(__has_feature)
constexpr bool kMemoryIsTelling = !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
constexpr bool kMemoryIsTelling = true;
#endif

const std::string kFresh = "ETag: \"v1\"\r\nCache-Control: max-age=6000\r\n";
const std::string kNoStore = "Cache-Control: no-store\r\n";

// "/held…" is answered when its client has left: by then the cache has nobody to answer.
class Origin {
 public:
  Origin()
      : origin_([this](OriginConnection& connection, const RecordedRequest& request) { serve(connection, request); }) {}
  ScriptedOrigin& operator*() { return origin_; }
  Event& asked(const std::string& target) { return held(target).asked; }
  Event& left(const std::string& target) { return held(target).left; }

 private:
  struct Held {
    Event asked, left;
  };
  Held& held(const std::string& target) {
    std::lock_guard lock(mutex_);
    return held_[target];
  }
  void serve(OriginConnection& connection, const RecordedRequest& request) {
    const std::string target = request.target();
    if (target.starts_with("/held")) {
      held(target).asked.set();
      held(target).left.wait();
    }
    const bool storable = !target.starts_with("/relayed");
    connection.send(response(200, storable ? kFresh : kNoStore, request.method() == "PUT" ? "" : body_));
  }

  const std::string body_ = pattern_bytes(kBodyBytes, 7);
  std::mutex mutex_;
  std::map<std::string, Held> held_;
  ScriptedOrigin origin_;
};

// One after the other, clients that leave before they have what they asked for.
class Leavers {
 public:
  Leavers(const CacheProcess& cache, Origin& origin, uint64_t seed) : cache_(cache), origin_(origin), random_(seed) {}

  void leave() {
    switch (random_() % 10) {
      case 0:
        return leave_after(part_of(get("/hit-" + std::to_string(random_() % kWarmHits))), 0);
      case 1:
        return leave_after(get("/miss-" + std::to_string(random_() % 100'000)), random_() % kBodyBytes);
      case 2:
        return leave_after(get("/hit-" + std::to_string(random_() % kWarmHits)), random_() % kBodyBytes);
      case 3:
        return leave_after(get("/hit-" + std::to_string(random_() % kWarmHits), "Range: bytes=1000-280000\r\n"),
                           random_() % 200'000);
      case 4:
        return leave_after(
            get("/hit-" + std::to_string(random_() % kWarmHits), "Range: bytes=0-99999,150000-280000\r\n"),
            random_() % 200'000);
      case 5:
        return leave_after(get("/relayed-" + std::to_string(random_() % 100)), random_() % kBodyBytes);
      case 6:
        return leave_after(get("/put", "Content-Length: 100000\r\n", "PUT") + pattern_bytes(random_() % 90'000, 1), 0);
      case 7:
        return leave_while_held();
      case 8:
        return leave_handshake();
      default:
        return leave_tls();
    }
  }

 private:
  std::string part_of(const std::string& text) { return text.substr(0, random_() % text.size()); }

  void end(Socket& socket) {
    if (random_() % 4 != 0) socket.reset();
  }

  // Reads about so many bytes of the answer.
  void leave_after(const std::string& request, size_t bytes) {
    RawClient client(connect_loopback(cache_.port(), 8192));
    client.send(request);
    if (bytes > 0) client.read_bytes(bytes);
    end(client.socket());
  }

  // Its request is at the source; the others wait with it for the same answer.
  void leave_while_held() {
    const std::string target = "/held-" + std::to_string(random_());
    RawClient leader(connect_loopback(cache_.port()));
    leader.send(get(target));
    EXPECT_TRUE(origin_.asked(target).wait());
    RawClient waiting(connect_loopback(cache_.port())), ranged(connect_loopback(cache_.port()));
    waiting.send(get(target));
    ranged.send(get(target, "Range: bytes=0-9\r\n"));
    end(waiting.socket());
    end(ranged.socket());
    end(leader.socket());
    origin_.left(target).set();
  }

  // Leaves inside its ClientHello, or behind it.
  void leave_handshake() {
    TlsPeer peer(connect_loopback(cache_.tls_port()), TlsPeerOptions{});
    (void)SSL_do_handshake(peer.ssl());
    char* data = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(peer.ssl()), &data);
    const std::string hello(data, static_cast<size_t>(size));
    peer.socket().send(random_() % 2 ? hello : part_of(hello));
    end(peer.socket());
  }

  void leave_tls() {
    TlsPeer peer(connect_loopback(cache_.tls_port(), 8192), TlsPeerOptions{});
    EXPECT_TRUE(peer.handshake()) << peer.failure();
    const size_t kind = random_() % 3;
    const std::string request = get((kind == 0 ? "/hit-" : "/relayed-") + std::to_string(random_() % kWarmHits));
    std::string bytes;
    if (kind == 2)
      peer.send(part_of(request));
    else if (peer.send(request))
      peer.read_until(bytes, random_() % kBodyBytes);
    end(peer.socket());
  }

  const CacheProcess& cache_;
  Origin& origin_;
  std::mt19937_64 random_;
};

class Soak : public testing::Test {
 protected:
  Soak() : cache_(configuration()) {
    const TestPki pki;
    const pki::Identity leaf = pki.leaf({"data.example"});
    std::ofstream(files_.path() + "/tls.key") << leaf.key_pem;
    std::ofstream(files_.path() + "/tls.crt") << leaf.certificate_pem;
  }

  std::string configuration() {
    const std::string& folder = files_.path();
    return "cache: {memory: 256Mi, tiers: [{medium: nvme, path: " + folder + "/tier, size: 32Mi}]}\n" +
           "tls: {certificates: [{certificate: " + folder + "/tls.crt, key: " + folder + "/tls.key}]}\n" +
           "upstreams: [{name: data, hosts: [data.example], tls: intercept, endpoint: \"http://127.0.0.1:" +
           std::to_string((*origin_).port()) + "\"}]\n";
  }

  void leave(uint64_t count, uint64_t seed) {
    std::atomic<uint64_t> left{count};
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Leavers leavers(cache_, origin_, seed * kThreads + i);
        for (uint64_t before = left; before > 0;) {
          if (left.compare_exchange_weak(before, before - 1)) leavers.leave();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    (*origin_).forget_requests();
  }

  // Until no client is there, and of connections to the source only one or none per loop: a closed one is noticed when
  // a request would use it. True in the end.
  bool settle() {
    if (!eventually([&] { return cache_.metric("nezha_cache_connections") == 0; })) return false;
    (*origin_).drop_connections();
    for (int i = 0; i < 40; ++i) {
      RawClient client(connect_loopback(cache_.port()));
      EXPECT_TRUE(client.ask(get("/relayed")).complete());
    }
    return eventually([&] { return cache_.metric("nezha_cache_connections") == 0; });
  }

  const TemporaryDirectory files_;
  Origin origin_;
  CacheProcess cache_;
};

TEST_F(Soak, ClientsThatBreakOffLeaveNothing) {
  const uint64_t seed = from_environment("NEZHA_SEED", std::random_device{}());
  const uint64_t aborts = from_environment("NEZHA_ABORTS", 10'000);
  SCOPED_TRACE("NEZHA_SEED=" + std::to_string(seed));
  cache_.launch();
  ASSERT_TRUE(cache_.wait_ready()) << cache_.log();
  for (size_t i = 0; i < kWarmHits; ++i)
    EXPECT_TRUE(RawClient(cache_.port()).ask(get("/hit-" + std::to_string(i))).complete());

  // The first half fills the tier, the pools and the allocator's arenas.
  leave(aborts / 2, seed);
  ASSERT_TRUE(settle()) << cache_.metric("nezha_cache_connections") << " connections";
  const size_t sockets = cache_.sockets(), descriptors = cache_.descriptors();
  const uint64_t memory = cache_.private_bytes();

  leave(aborts - aborts / 2, seed + 1);
  ASSERT_TRUE(settle()) << cache_.metric("nezha_cache_connections") << " connections";
  std::cout << "NEZHA_SEED=" << seed << ": " << aborts << " clients left; sockets " << sockets << " -> "
            << cache_.sockets() << ", descriptors " << descriptors << " -> " << cache_.descriptors()
            << ", private memory " << memory / 1024 << " -> " << cache_.private_bytes() / 1024 << " KiB; "
            << cache_.metric("nezha_cache_aborted_answers_total") << " answers cut, "
            << cache_.metric("nezha_cache_incomplete_fills_total") << " downloads ended early" << std::endl;
  EXPECT_TRUE(eventually([&] { return cache_.sockets() <= sockets + 2; })) << sockets << " -> " << cache_.sockets();
  // Files of segments come and go.
  EXPECT_LE(cache_.descriptors(), descriptors + 8);
  if (kMemoryIsTelling) {
    EXPECT_LE(cache_.private_bytes(), memory + kAllowanceBytes) << "was " << memory;
  }
  EXPECT_GT(cache_.metric("nezha_cache_aborted_answers_total"), static_cast<double>(aborts / 10));

  // What is under way, connections and downloads, ends by itself: there is none.
  EXPECT_EQ(cache_.stop(), 0) << cache_.log();
  EXPECT_NE(cache_.log().find("all_answers_ended=yes"), std::string::npos) << cache_.log();
}

}  // namespace
}  // namespace nezha::test
