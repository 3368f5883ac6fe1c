// ManualClock: time that stands still until a test moves it. Wall and steady time move together.
// Threads: any.
#pragma once

#include <atomic>
#include <chrono>

#include "nezha/base/clock.h"

namespace nezha::test {

class ManualClock final : public Clock {
 public:
  SteadyTime now() const override { return SteadyTime(std::chrono::seconds(1'000) + elapsed()); }
  WallTime wall() const override { return std::chrono::system_clock::from_time_t(1'800'000'000) + elapsed(); }
  void advance(std::chrono::milliseconds by) { elapsed_ms_ += by.count(); }

 private:
  std::chrono::milliseconds elapsed() const { return std::chrono::milliseconds(elapsed_ms_.load()); }
  std::atomic<int64_t> elapsed_ms_{0};
};

}  // namespace nezha::test
