// TestClock: the machine's clocks, moved. Time goes on by itself; a test adds to it or takes from it.
// A steady clock that lags by more than a timeout makes deadlines set from then on lie in the past: the timeout comes
// at once, without waiting for it. Threads: any.
#pragma once

#include <atomic>

#include "nezha/base/clock.h"

namespace nezha::test {

class TestClock final : public Clock {
 public:
  SteadyTime now() const override {
    return std::chrono::steady_clock::now() - std::chrono::seconds(steady_lag_s_.load());
  }
  WallTime wall() const override {
    return std::chrono::system_clock::now() + std::chrono::seconds(wall_ahead_s_.load());
  }
  // Every deadline set from now on is this much nearer; 0 ends that.
  void shorten_timeouts(std::chrono::seconds by) { steady_lag_s_ = by.count(); }
  // What was noted with the steady clock is this much older than it was.
  void advance_steady(std::chrono::seconds by) { steady_lag_s_ -= by.count(); }
  // Stored answers are this much older than they were.
  void advance_wall(std::chrono::seconds by) { wall_ahead_s_ += by.count(); }

 private:
  std::atomic<int64_t> steady_lag_s_{0};
  std::atomic<int64_t> wall_ahead_s_{0};
};

}  // namespace nezha::test
