#include "cache/prefetch/fetch_queue.h"

namespace nezha::cache {
namespace {

constexpr size_t kBytesMax = 8 * 1024 * 1024;

size_t size_of(const FetchTarget& target) {
  return target.host.size() + target.authority.size() + target.target.size() + sizeof target;
}

}  // namespace

void FetchQueue::put(FetchTarget target) {
  size_bytes_ += size_of(target);
  targets_.push_back(std::move(target));
  changed_.notify_all();
}

bool FetchQueue::offer(FetchTarget target) {
  std::lock_guard lock(mutex_);
  if (targets_.size() >= count_max_ || size_bytes_ + size_of(target) > kBytesMax) return false;
  put(std::move(target));
  return true;
}

bool FetchQueue::push(FetchTarget target, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const auto has_room = [this] { return targets_.size() < (count_max_ + 1) / 2 && size_bytes_ < kBytesMax / 2; };
  if (!changed_.wait(lock, stop, has_room) || stop.stop_requested()) return false;
  put(std::move(target));
  return true;
}

std::optional<FetchTarget> FetchQueue::pop(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait(lock, stop, [this] { return !targets_.empty(); }) || stop.stop_requested()) return std::nullopt;
  FetchTarget out = std::move(targets_.front());
  targets_.pop_front();
  size_bytes_ -= size_of(out);
  changed_.notify_all();
  return out;
}

}  // namespace nezha::cache
