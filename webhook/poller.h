// Poller: calls a function now and then on a thread of its own, until it is destroyed.
// Threads: the function runs on one thread; the destructor waits for a call in progress.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace nezha::webhook {

class Poller {
 public:
  Poller(std::chrono::milliseconds interval, std::function<void()> work)
      : thread_([this, interval, work = std::move(work)](std::stop_token stop) {
          std::unique_lock lock(mutex_);
          while (!wake_.wait_for(lock, stop, interval, [&stop] { return stop.stop_requested(); })) work();
        }) {}

 private:
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;  // last: what it uses exists before it runs
};

}  // namespace nezha::webhook
