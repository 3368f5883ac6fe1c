// Which connection of several addresses is taken: an address that failed is left alone, and with it what rests there.
#include "cache/fill/upstream.h"

#include <gtest/gtest.h>

#include <set>

#include "nezha/base/limits.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"
#include "test/support/test_clock.h"

namespace nezha::test {
namespace {

using cache::Origin;
using cache::UpstreamPool;

class UpstreamPoolTest : public testing::Test {
 protected:
  ~UpstreamPoolTest() override { pool_.trim(true); }

  Origin origin() const {
    Origin out{false, "127.0.0.1", a_.port(), false};
    out.more = std::make_shared<const std::vector<config::Endpoint>>(
        std::vector<config::Endpoint>{{false, "127.0.0.1", b_.port()}});
    return out;
  }
  static std::string address(const ScriptedOrigin& of) { return "127.0.0.1:" + std::to_string(of.port()); }

  static net::Task<> take(UpstreamPool& pool, Origin origin, bool fresh, std::vector<std::string> not_at,
                          std::optional<Result<UpstreamPool::Acquired>>& out) {
    out.emplace(co_await pool.acquire(std::move(origin), fresh, std::move(not_at)));
  }
  Result<UpstreamPool::Acquired> acquire(bool fresh, std::vector<std::string> not_at = {}) {
    std::optional<Result<UpstreamPool::Acquired>> out;
    net::Gate gate(loop_->executor());
    gate.spawn(take(pool_, origin(), fresh, std::move(not_at), out));
    loop_->run_until([&] { return gate.size() == 0; }, std::chrono::steady_clock::now() + kWatchdog);
    return std::move(*out);
  }
  // Takes one and gives it back; its address.
  std::string use(bool fresh = false, std::vector<std::string> not_at = {}) {
    auto acquired = acquire(fresh, std::move(not_at));
    if (!acquired) return "error: " + acquired.error().message;
    const std::string address = acquired.value().connection->peer();
    pool_.release(acquired.value().origin, std::move(acquired.value().connection));
    return address;
  }

  ScriptedOrigin a_{[](OriginConnection&, const RecordedRequest&) {}};
  ScriptedOrigin b_{[](OriginConnection&, const RecordedRequest&) {}};
  TestClock clock_;
  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();
  std::unique_ptr<net::Loop> loop_ = net::make_loop();
  std::unique_ptr<net::Resolver> resolver_ = std::move(net::make_resolver({{"127.0.0.1", 1}}).value());
  std::shared_ptr<const net::TlsClient> tls_ = net::make_tls_client("");
  net::TlsScratch scratch_;
  UpstreamPool pool_{{*loop_, *resolver_, *tls_, scratch_, clock_, *log_, *metrics_}};
};

TEST_F(UpstreamPoolTest, WhatRestsAtASilentAddressIsLeftAlone) {
  for (int i = 0; i < 4; ++i) use(true);
  std::set<std::string> used;
  for (int i = 0; i < 4; ++i) used.insert(use());
  EXPECT_EQ(used, (std::set<std::string>{address(a_), address(b_)}));
  pool_.distrust(address(a_), true);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(use(), address(b_));
  clock_.shorten_timeouts(-(limits::kBodyStallTimeout - std::chrono::seconds(2)));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(use(), address(b_)) << "for as long as somebody would wait for it";
  clock_.shorten_timeouts(-(limits::kBodyStallTimeout + std::chrono::seconds(2)));
  used.clear();
  for (int i = 0; i < 4; ++i) used.insert(use());
  EXPECT_EQ(used.size(), 2u) << "it comes back";
}

TEST_F(UpstreamPoolTest, AnAnswerMakesUpForAFailure) {
  pool_.distrust(address(a_), true);
  pool_.trust(address(a_));
  std::set<std::string> used;
  for (int i = 0; i < 4; ++i) used.insert(use());
  EXPECT_EQ(used.size(), 2u);
}

TEST_F(UpstreamPoolTest, AddressesThatWillNotDo) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(use(i % 2 == 0, {address(a_)}), address(b_));
  EXPECT_FALSE(acquire(false, {address(a_), address(b_)}));
}

}  // namespace
}  // namespace nezha::test
