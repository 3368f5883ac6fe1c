// Event: something a test waits for instead of sleeping. Threads: any.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace nezha::test {

inline constexpr std::chrono::seconds kWatchdog{60};

// Copies are one event, so that a thread which waits need not end before whoever made it: capture it by value.
class Event {
 public:
  void set() const {
    const std::shared_ptr<State> state = state_;
    std::lock_guard lock(state->mutex);
    state->is_set = true;
    state->changed.notify_all();
  }
  // False when the watchdog ended the wait.
  bool wait() const {
    const std::shared_ptr<State> state = state_;
    std::unique_lock lock(state->mutex);
    return state->changed.wait_for(lock, kWatchdog, [&] { return state->is_set; });
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_set = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
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
