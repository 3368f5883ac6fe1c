// CacheUnderTest: the whole data plane in this process, composed as cache/main.cc does, on 127.0.0.1 with ports of the
// kernel's choice. Threads: the test's own; the cache has its loops.
#pragma once

#include <memory>
#include <string>

#include "cache/store/store.h"
#include "nezha/config/settings.h"
#include "test/support/raw_client.h"
#include "test/support/test_clock.h"

namespace nezha::cache {
class Server;
class RouteStore;
class Certificates;
class Approvals;
class KeyRing;
class FetchQueue;
class Prefetcher;
}  // namespace nezha::cache
namespace nezha::net {
class Resolver;
class Workers;
}  // namespace nezha::net
namespace nezha::obs {
class Log;
class Metrics;
}  // namespace nezha::obs

namespace nezha::test {

struct CacheOptions {
  config::Freshness freshness{config::Freshness::Mode::kHttp, std::chrono::seconds(0)};
  config::Protocol protocol = config::Protocol::kHttp;
  std::vector<config::TierSettings> tiers{{config::Medium::kMemory, "", 64 * 1024 * 1024}};
  cache::StoreLimits limits{16 * 1024 * 1024, 64 * 1024 * 1024, 64 * 1024 * 1024};
  size_t loops = 2;
  bool tls_endpoint = false;  // the upstream's endpoint is https://
  config::TlsMode tls = config::TlsMode::kPassthrough;
  config::TlsSettings certificates{};
  std::vector<uint16_t> more_ports{};     // of further endpoints on 127.0.0.1
  std::vector<std::string> more_hosts{};  // of the upstream, beside data.example
  bool write_through = false;
  bool without_endpoint = false;  // the upstream's host is 127.0.0.1, too; where requests go follows from their Host
  std::string credentials_directory{};  // then the upstream has the keys of its folder "keys"
  std::string upstream_roots_pem{};     // whom the cache trusts; empty: the system's roots
};

inline CacheOptions with_freshness(config::Freshness::Mode mode, int ttl_s = 0) {
  CacheOptions options;
  options.freshness = {mode, std::chrono::seconds(ttl_s)};
  return options;
}

class CacheUnderTest {
 public:
  // Host data.example is fetched from 127.0.0.1:origin_port.
  explicit CacheUnderTest(uint16_t origin_port, CacheOptions options = {});
  ~CacheUnderTest();

  uint16_t port() const;
  uint16_t tls_port() const;
  uint16_t relay_port() const;  // never intercepts
  RawClient connect(int receive_buffer_bytes = 0) const { return RawClient(port(), receive_buffer_bytes); }
  // One request on a connection of its own.
  ClientAnswer ask(std::string_view request, bool to_head = false) const;

  TestClock& clock() { return clock_; }
  cache::Store& store() { return *store_; }
  const cache::RouteStore& routes() const { return *routes_; }
  net::Workers& workers() { return *workers_; }
  cache::Approvals& approvals() { return *approvals_; }
  cache::Prefetcher& prefetcher() { return *prefetcher_; }
  size_t connections() const;
  bool drain(SteadyTime deadline);  // cache::Server::drain()
  // The value of a series, 0 when there is none: `nezha_cache_requests_total{result="hit"}`.
  double metric(const std::string& series) const;
  // Waits until something is stored under the path and query; false when the watchdog ended the wait.
  bool wait_stored(const std::string& path, const std::string& query = "");

 private:
  TestClock clock_;
  std::unique_ptr<obs::Log> log_;
  std::unique_ptr<obs::Metrics> metrics_;
  std::unique_ptr<net::Workers> workers_;
  std::unique_ptr<cache::Store> store_;
  std::unique_ptr<net::Resolver> resolver_;
  std::unique_ptr<cache::RouteStore> routes_;
  std::unique_ptr<cache::Certificates> certificates_;
  std::unique_ptr<cache::KeyRing> keys_;
  std::unique_ptr<cache::Approvals> approvals_;
  std::unique_ptr<cache::FetchQueue> fetches_;
  std::unique_ptr<cache::Server> server_;
  std::unique_ptr<cache::Prefetcher> prefetcher_;
};

}  // namespace nezha::test
