#include "cache/supervise/drop_queue.h"

#include <sys/socket.h>

#include "cache/supervise/link.h"

namespace nezha::cache {
namespace {

constexpr size_t kDropsMax = 100'000;
constexpr size_t kBytesMax = 32 * 1024 * 1024;

}  // namespace

bool DropQueue::has_room() const { return queue_.size() < kDropsMax && bytes_ < kBytesMax; }

net::Task<> DropQueue::drop(std::vector<Drop> drops) {
  for (auto& each : drops) {
    queue_.push_back((each.under ? link::kDropUnder : link::kDropPath) + each.text);
    bytes_ += queue_.back().size();
  }
  const uint64_t end = first_ + queue_.size();
  pump();
  // A cache that does not accept yet does it before; one that dies meanwhile leaves it to the next.
  for (;;) {
    const uint64_t version = changed_.version();
    if (!accepting_ || first_ >= end) co_return;
    co_await changed_.wait(version);
  }
}

void DropQueue::attach(int link) {
  detach();
  link_ = link;
}

void DropQueue::detach() {
  link_ = -1;
  sent_ = 0;
  accepting_ = false;
  changed_.notify_all();
}

void DropQueue::note_done() {
  if (sent_ == 0) return;
  bytes_ -= queue_.front().size();
  queue_.pop_front();
  ++first_;
  --sent_;
  changed_.notify_all();
}

bool DropQueue::pump() {
  if (link_ < 0) return false;
  while (sent_ < queue_.size() && send(queue_[sent_])) ++sent_;
  if (!accepting_ && sent_ == queue_.size()) accepting_ = send(std::string(1, link::kAccept));
  return accepting_;
}

bool DropQueue::send(const std::string& message) {
  const ssize_t sent = ::send(link_, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(message.size());
}

}  // namespace nezha::cache
