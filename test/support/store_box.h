// StoreBox: a store on media of the test's choice, driven by blocking calls: coroutines are run to their end, workers
// work at once, on the calling thread. Threads: any.
#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/store/store.h"
#include "test/support/manual_clock.h"

namespace nezha::test {

// Runs a coroutine to its end on this thread.
void run_task(net::Task<> task);

template <class T>
net::Task<> keep_result(net::Task<T> task, std::optional<T>& out) {
  out.emplace(co_await std::move(task));
}

template <class T>
T run_task(net::Task<T> task) {
  std::optional<T> out;
  run_task(keep_result(std::move(task), out));
  return std::move(*out);
}

class InlineWorkers final : public net::Workers {
 public:
  net::Task<> run(std::function<void()> work) override {
    work();
    co_return;
  }
  void start(std::function<void()> work) override { work(); }
  void join() override {}
};

// A head as of a response with this strong entity tag. `second`: when it came.
std::shared_ptr<cache::StoredHead> head_of(const std::string& etag, std::optional<uint64_t> total_bytes,
                                           int second = 0);

inline constexpr cache::StoreLimits kRoomyLimits{16 * 1024 * 1024, 64 * 1024 * 1024, 64 * 1024 * 1024};

class StoreBox {
 public:
  explicit StoreBox(std::vector<cache::Store::TierPlan> tiers, cache::StoreLimits limits = kRoomyLimits);
  // One tier on one medium.
  StoreBox(std::unique_ptr<cache::Medium> medium, uint64_t size_bytes, uint64_t segment_bytes);

  cache::Store& store() { return *store_; }
  ManualClock& clock() { return clock_; }

  // As a fill does it: all pieces, then the head. False when the store does not take it.
  bool put(const cache::CacheKey& key, std::shared_ptr<cache::StoredHead> head, std::string_view body,
           uint64_t begin = 0, bool may_join = false);
  cache::StoredHeadPtr find(const cache::CacheKey& key, const http::Fields& request = {});
  // Nothing: not all of it is stored. Also when stored bytes turn out to be damaged, then `damaged` is set.
  std::optional<std::string> read(const cache::CacheKey& key, const cache::StoredHeadPtr& head, http::ByteRange range,
                                  bool* damaged = nullptr);
  // The whole body; nothing: a miss.
  std::optional<std::string> read(const cache::CacheKey& key);
  void invalidate(const std::string& path) { run_task(store_->invalidate({path})); }
  void drop(const cache::CacheKey& key, const cache::StoredHeadPtr& head) { run_task(store_->drop(key, head)); }
  cache::StoredHeadPtr refresh(const cache::CacheKey& key, const cache::StoredHeadPtr& before,
                               const cache::StoredHeadPtr& after) {
    return run_task(store_->refresh(key, before, after));
  }

 private:
  ManualClock clock_;
  InlineWorkers workers_;
  std::unique_ptr<obs::Log> log_;
  std::unique_ptr<obs::Metrics> metrics_;
  std::unique_ptr<cache::Store> store_;
};

}  // namespace nezha::test
