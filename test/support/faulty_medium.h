// FaultyMedium: a medium whose calls fail when a test says so. TestDisk: a durable medium in memory, whose bytes
// outlive the store on it, can be changed behind its back, and can be copied in the middle of any write, as a kill
// leaves them. Threads: any.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "cache/tier/medium.h"

namespace nezha::test {

enum class Call { kWrite, kSync, kLoad, kOpen, kCreate, kRemove, kMark };

class Faults {
 public:
  // The calls of this kind fail, from the one behind `after` others on, `count` times. `partly`: a write does a half.
  void arm(Call call, uint64_t after, uint64_t count = 1, bool partly = false);
  // Each call of this kind does this first, and may wait in it.
  void before(Call call, std::function<void()> act);
  // The kernel takes back what is in memory: nothing is resident until the next load.
  void evict() { evicted_ = true; }
  bool evicted() const { return evicted_; }
  void loaded() { evicted_ = false; }
  void disarm();
  uint64_t calls(Call call) const;
  // For the medium: whether this call fails.
  enum class Fate { kWorks, kFails, kHalf };
  Fate next(Call call);

 private:
  struct Plan {
    uint64_t calls = 0;
    uint64_t from = UINT64_MAX;
    uint64_t until = 0;
    bool partly = false;
    std::function<void()> before;
  };
  mutable std::mutex mutex_;
  std::array<Plan, 7> plans_;
  std::atomic<bool> evicted_{false};
};

// The medium is owned, the faults are borrowed for the medium's life.
std::unique_ptr<cache::Medium> make_faulty_medium(std::unique_ptr<cache::Medium> medium, Faults& faults);

class TestDisk {
 public:
  TestDisk();
  // Media share the bytes: one at a time.
  std::unique_ptr<cache::Medium> medium() const;
  TestDisk copy() const;
  // Copies the bytes when this many more writes have begun, with a random part of the last one done.
  void copy_later(uint64_t writes, uint64_t random);
  // The copy; nothing when it has not come to it.
  std::unique_ptr<TestDisk> take_copy();

  std::vector<uint32_t> numbers() const;
  std::string read(uint32_t number) const;
  void poke(uint32_t number, uint64_t offset, char change);  // XOR
  void put(uint32_t number, std::string bytes);
  void remove(uint32_t number);
  size_t set_aside() const;  // how many segments were
  std::optional<std::string> marker() const;
  void set_marker(std::optional<std::string> bytes);
  std::optional<std::string> marker_aside() const;

 private:
  struct State;
  class DiskMedium;
  class DiskBytes;
  explicit TestDisk(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

}  // namespace nezha::test
