// Event: something a test waits for instead of sleeping. Threads: any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace nezha::test {

inline constexpr std::chrono::seconds kWatchdog{60};

class Event {
 public:
  void set() {
    std::lock_guard lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  // False when the watchdog ended the wait.
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kWatchdog, [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

// For conditions that nothing announces (a count inside the product): looks again and again until it holds.
// False when the watchdog ended the wait.
inline bool eventually(const std::function<bool()>& holds) {
  const auto deadline = std::chrono::steady_clock::now() + kWatchdog;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

}  // namespace nezha::test
