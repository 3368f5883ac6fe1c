// FetchQueue: objects that are to be fetched into the cache with its own keys: because somebody asked for them
// (POST /prefetch), or because they were just written (`writeThrough: cache`).
// Threads: any.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>

namespace nezha::cache {

struct PrefetchJob;

struct FetchTarget {
  bool tls = false;
  std::string host;       // as readers name it, without a port
  std::string authority;  // the same for the Host field, with a port where readers write one
  std::string target;     // path and query, percent-encoded as readers do
  std::shared_ptr<PrefetchJob> job = nullptr;
};

class FetchQueue {
 public:
  explicit FetchQueue(size_t count_max) : count_max_(count_max) {}

  // False when it is full: of so many, or of more bytes than such names have.
  bool offer(FetchTarget target);
  // Waits for room, and leaves half of it to those who do not. False when it was stopped.
  bool push(FetchTarget target, const std::stop_token& stop);
  // Waits for one. Nothing when it was stopped.
  std::optional<FetchTarget> pop(const std::stop_token& stop);

 private:
  void put(FetchTarget target);  // REQUIRES: mutex_ held

  const size_t count_max_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<FetchTarget> targets_;
  size_t size_bytes_ = 0;  // of their texts
};

}  // namespace nezha::cache
