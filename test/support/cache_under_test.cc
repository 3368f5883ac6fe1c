#include "test/support/cache_under_test.h"

#include <csignal>

#include "cache/accept/server.h"
#include "cache/prefetch/prefetch.h"
#include "nezha/base/check.h"
#include "nezha/base/text.h"
#include "test/support/event.h"

namespace nezha::test {
namespace {

std::shared_ptr<const cache::Routes> routes_to(uint16_t origin_port, const CacheOptions& options) {
  auto settings = std::make_shared<config::Settings>();
  config::Upstream upstream;
  upstream.name = UpstreamName("data");
  upstream.hosts = {HostName("data.example"), HostName("other.example")};
  for (const auto& host : options.more_hosts) upstream.hosts.emplace_back(host);
  upstream.protocol = options.protocol;
  upstream.freshness = options.freshness;
  upstream.tls = options.tls;
  upstream.write_through = options.write_through;
  if (!options.credentials_directory.empty()) upstream.credentials_secret = "keys";
  if (options.without_endpoint)
    upstream.hosts = {HostName("127.0.0.1")};
  else
    upstream.endpoint = config::Endpoint{options.tls_endpoint, "127.0.0.1", origin_port};
  auto more = std::make_shared<std::vector<config::Endpoint>>();
  for (const uint16_t port : options.more_ports) more->push_back({options.tls_endpoint, "127.0.0.1", port});
  if (!more->empty()) upstream.more_endpoints = std::move(more);
  settings->upstreams.push_back(std::move(upstream));
  return std::make_shared<const cache::Routes>(std::move(settings));
}

template <class T>
T value_of(Result<T> result) {
  NEZHA_CHECK(result.has_value(), result.error().message.c_str());
  return std::move(result.value());
}

}  // namespace

CacheUnderTest::CacheUnderTest(uint16_t origin_port, CacheOptions options)
    : log_(obs::make_null_log()), metrics_(obs::make_metrics()) {
  std::signal(SIGPIPE, SIG_IGN);
  workers_ = net::make_workers(2);
  store_ =
      value_of(cache::Store::open(options.tiers, options.limits, {*workers_, *workers_, clock_, *log_, *metrics_}));
  resolver_ = value_of(net::make_resolver({{"127.0.0.1", 1}}));
  routes_ = std::make_unique<cache::RouteStore>(routes_to(origin_port, options));
  config::ListenSettings listen;
  listen.http.push_back({"127.0.0.1", 0});
  listen.https.push_back({"127.0.0.1", 0});
  listen.relay.push_back({"127.0.0.1", 0});
  certificates_ = value_of(cache::load_certificates(options.certificates, clock_, *log_, *metrics_));
  keys_ = cache::follow_key_ring(options.credentials_directory, *log_, *metrics_);
  approvals_ = std::make_unique<cache::Approvals>(1000);
  fetches_ = std::make_unique<cache::FetchQueue>(100);
  cache::ListeningSockets sockets = value_of(cache::open_sockets(listen, options.loops));
  server_ =
      value_of(cache::start_server({*routes_, *store_, *resolver_, *workers_, clock_, *log_, *metrics_, *certificates_,
                                    *keys_, *approvals_, *fetches_, net::make_tls_client(options.upstream_roots_pem)},
                                   std::move(sockets), options.loops));
  server_->accept();
  prefetcher_ = cache::start_prefetcher({*routes_, *keys_, *fetches_, clock_, *log_, *metrics_,
                                         server_->http_addresses().front(), server_->https_addresses().front()});
}

CacheUnderTest::~CacheUnderTest() {
  clock_.shorten_timeouts(std::chrono::seconds(0));
  prefetcher_.reset();
  server_.reset();
  workers_->join();
}

uint16_t CacheUnderTest::port() const { return server_->http_addresses().front().port; }
size_t CacheUnderTest::connections() const { return server_->connections(); }
bool CacheUnderTest::drain(SteadyTime deadline) { return server_->drain(deadline); }
uint16_t CacheUnderTest::relay_port() const { return server_->relay_addresses().front().port; }
uint16_t CacheUnderTest::tls_port() const { return server_->https_addresses().front().port; }

ClientAnswer CacheUnderTest::ask(std::string_view request, bool to_head) const {
  RawClient client = connect();
  return client.ask(request, to_head);
}

double CacheUnderTest::metric(const std::string& series) const {
  const std::string text = metrics_->expose();
  for (const auto line : split(text, '\n')) {
    if (line.starts_with(series + " ")) return std::stod(std::string(line.substr(series.size() + 1)));
  }
  return 0;
}

bool CacheUnderTest::wait_stored(const std::string& path, const std::string& query) {
  return eventually([&] {
    bool must_load = false;
    const auto head = store_->find_now({"data.example" + path, query}, {}, must_load);
    // Visible piece by piece, a response is there when its fill has ended.
    return head && !store_->is_filling(head->key);
  });
}

}  // namespace nezha::test
