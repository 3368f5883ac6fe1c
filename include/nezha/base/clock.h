// Clock: the only source of time, given by constructor so that tests can move it.
// Threads: now() and wall() may be called from any thread.
#pragma once

#include <chrono>
#include <ctime>

namespace nezha {

using SteadyTime = std::chrono::steady_clock::time_point;  // for deadlines and durations
using WallTime = std::chrono::system_clock::time_point;    // for Date, Expires, certificates

class Clock {
 public:
  virtual ~Clock() = default;
  virtual SteadyTime now() const = 0;
  virtual WallTime wall() const = 0;
  // now(), at worst some milliseconds late: cheap enough for every request.
  virtual SteadyTime coarse_now() const { return now(); }
};

// The machine's clocks.
class SystemClock final : public Clock {
 public:
  SteadyTime now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall() const override { return std::chrono::system_clock::now(); }
  SteadyTime coarse_now() const override {
    timespec time{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return SteadyTime(std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec));
  }
};

}  // namespace nezha
