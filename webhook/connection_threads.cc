#include "webhook/connection_threads.h"

#include <system_error>
#include <utility>

namespace nezha::webhook {

ConnectionThreads::ConnectionThreads(size_t threads_max, std::function<void()> on_full,
                                     std::function<void()> on_shutdown)
    : threads_max_(threads_max), on_full_(std::move(on_full)), on_shutdown_(std::move(on_shutdown)) {}

ConnectionThreads::~ConnectionThreads() { shutdown(); }

void ConnectionThreads::enqueue(std::function<void()> job) {
  bool full = false;
  {
    std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (jobs_.size() > idle_) {
      full = threads_.size() >= threads_max_;
      try {
        if (!full) threads_.emplace_back([this] { work(); });
      } catch (const std::system_error&) {
        full = true;  // the process may not have more threads; those it has will come to this connection
      }
    }
  }
  changed_.notify_one();
  if (full) on_full_();
}

void ConnectionThreads::shutdown() {
  {
    std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  if (!threads_.empty()) on_shutdown_();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

void ConnectionThreads::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this] { return !jobs_.empty() || ending_; });
    --idle_;
    if (jobs_.empty()) return;
    auto job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace nezha::webhook
