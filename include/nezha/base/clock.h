// Clock: the only source of time, given by constructor so that tests can move it.
// Threads: now() and wall() may be called from any thread.
#pragma once

#include <chrono>

namespace nezha {

using SteadyTime = std::chrono::steady_clock::time_point;  // for deadlines and durations
using WallTime = std::chrono::system_clock::time_point;    // for Date, Expires, certificates

class Clock {
 public:
  virtual ~Clock() = default;
  virtual SteadyTime now() const = 0;
  virtual WallTime wall() const = 0;
};

// The machine's clocks.
class SystemClock final : public Clock {
 public:
  SteadyTime now() const override { return std::chrono::steady_clock::now(); }
  WallTime wall() const override { return std::chrono::system_clock::now(); }
};

}  // namespace nezha
