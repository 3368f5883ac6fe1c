#include "cache/prefetch/fetch_queue.h"

namespace nezha::cache {

bool FetchQueue::offer(FetchTarget target) {
  std::lock_guard lock(mutex_);
  if (targets_.size() >= count_max_) return false;
  targets_.push_back(std::move(target));
  changed_.notify_all();
  return true;
}

bool FetchQueue::push(FetchTarget target, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [this] { return targets_.size() < (count_max_ + 1) / 2; })) return false;
  targets_.push_back(std::move(target));
  changed_.notify_all();
  return true;
}

std::optional<FetchTarget> FetchQueue::pop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [this] { return !targets_.empty(); })) return std::nullopt;
  FetchTarget out = std::move(targets_.front());
  targets_.pop_front();
  changed_.notify_all();
  return out;
}

}  // namespace nezha::cache
