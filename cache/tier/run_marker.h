// RunMarkers: which tiers took part in the last run of the cache. A tier that was left out of one may hold what was
// dropped meanwhile. Each tier that outlives the process has a marker beside its segments (docs/formats.md): the run it
// took part in last, one that it is about to take part in, and the runs before, that of every tier known then. So of
// two tiers it is known which one is behind, or that each is behind the other.
// What it cannot see: a tier that is not there now.
// Threads: one, at start.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cache/tier/medium.h"

namespace nezha::cache {

class RunMarkers {
 public:
  // Reads the markers. Media that do not outlive the process have none. Media are borrowed for the life of this value;
  // `draw_id` gives a random number that was never given before. Blocks.
  RunMarkers(std::vector<Medium*> media, std::function<uint64_t()> draw_id);

  // What the marker takes of a tier's size, with its predecessor.
  static constexpr uint64_t kBytes = 2 * 8192;

  // Why nothing in this tier may be served; empty: it may.
  const std::string& distrust(size_t tier) const { return tiers_[tier].distrust; }

  struct Unmarked {
    size_t tier = 0;
    std::string reason;
  };
  // Begins a run of these tiers. Whoever dies in it leaves all of them as much part of the last run as they were
  // before. Returns the first tier whose marker could not be written: the run has not begun, begin one without it.
  // Blocks. REQUIRES: those that are distrusted were emptied for good.
  std::optional<Unmarked> begin(const std::vector<size_t>& tiers);
  // Where markers of another version, or not of ours, are now.
  const std::vector<std::string>& set_aside() const { return set_aside_; }

 private:
  enum class State { kAbsent, kSound, kDamaged, kForeign };
  struct Tier {
    Medium* medium = nullptr;
    State state = State::kAbsent;
    uint64_t run = 0;  // 0: none yet
    uint64_t pending = 0;
    std::vector<uint64_t> known;
    std::string distrust;
  };
  static std::string encode(uint64_t run, uint64_t pending, const std::vector<uint64_t>& known);
  static void decode(std::string_view bytes, Tier& out);
  const Tier* find_latest() const;
  std::string why_distrusted(const Tier& tier, const Tier* latest) const;
  void learn(uint64_t run);
  std::optional<Unmarked> write(const std::vector<size_t>& tiers, uint64_t pending);

  std::function<uint64_t()> draw_id_;
  std::vector<Tier> tiers_;
  uint64_t last_run_ = 0;        // of all that are trusted, and of those that were emptied
  std::vector<uint64_t> known_;  // the runs before it, oldest first
  std::vector<std::string> set_aside_;
};

}  // namespace nezha::cache
