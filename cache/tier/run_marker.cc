#include "cache/tier/run_marker.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "cache/tier/format.h"

namespace nezha::cache {
namespace {

constexpr uint32_t kMarkerVersion = 1;
constexpr char kMagic[8] = {'N', 'E', 'Z', 'H', 'A', 'R', 'U', 'N'};
constexpr size_t kMarkerBytes = RunMarkers::kBytes / 2;
constexpr size_t kKnownMax = (kMarkerBytes - 40) / 8;

struct RawMarker {
  char magic[8];
  uint32_t version;
  uint32_t known_count;
  uint64_t run;
  uint64_t pending;
  std::array<uint64_t, kKnownMax> known;
  uint64_t checksum;
};
static_assert(sizeof(RawMarker) == kMarkerBytes);

uint64_t checksum_of(const RawMarker& raw) {
  return format::data_checksum({reinterpret_cast<const char*>(&raw), offsetof(RawMarker, checksum)});
}

bool contains(const std::vector<uint64_t>& runs, uint64_t run) {
  return std::find(runs.begin(), runs.end(), run) != runs.end();
}

}  // namespace

std::string RunMarkers::encode(uint64_t run, uint64_t pending, const std::vector<uint64_t>& known) {
  RawMarker raw{};
  std::memcpy(raw.magic, kMagic, sizeof kMagic);
  raw.version = kMarkerVersion;
  raw.known_count = static_cast<uint32_t>(known.size());
  raw.run = run;
  raw.pending = pending;
  std::copy(known.begin(), known.end(), raw.known.begin());
  raw.checksum = checksum_of(raw);
  return {reinterpret_cast<const char*>(&raw), sizeof raw};
}

void RunMarkers::decode(std::string_view bytes, Tier& out) {
  RawMarker raw{};
  std::memcpy(&raw, bytes.data(), std::min(bytes.size(), sizeof raw));
  out.state = State::kForeign;
  if (std::memcmp(raw.magic, kMagic, sizeof kMagic) != 0 || raw.version != kMarkerVersion) return;
  out.state = State::kDamaged;
  if (bytes.size() != sizeof raw || raw.checksum != checksum_of(raw) || raw.known_count > kKnownMax) return;
  out.state = State::kSound;
  out.run = raw.run;
  out.pending = raw.pending;
  out.known.assign(raw.known.begin(), raw.known.begin() + raw.known_count);
}

RunMarkers::RunMarkers(std::vector<Medium*> media, std::function<uint64_t()> draw_id) : draw_id_(std::move(draw_id)) {
  for (Medium* medium : media) {
    Tier& tier = tiers_.emplace_back();
    tier.medium = medium;
    const Result<std::string> bytes = medium->read_marker();
    if (bytes)
      decode(bytes.value(), tier);
    else if (bytes.error().remedy != Remedy::kAbsent)
      tier.state = State::kDamaged;
  }
  const bool first = std::all_of(tiers_.begin(), tiers_.end(), [](const Tier& tier) {
    return tier.state == State::kAbsent || (tier.state == State::kSound && tier.run == 0);
  });
  const Tier* latest = find_latest();
  // Where no tier is trusted, their emptying counts as a run of all of them: whoever was in none of theirs is behind.
  last_run_ = first ? 0 : latest ? latest->run : draw_id_();
  for (Tier& tier : tiers_) {
    if (tier.medium->durable() && !first) tier.distrust = why_distrusted(tier, latest);
    for (const uint64_t run : tier.known) learn(run);
  }
  for (const Tier& tier : tiers_) {
    learn(tier.run);
    learn(tier.pending);
  }
}

// The tier that knows of every run that another one took part in. One whose marker cannot be read may have taken part
// in any.
const RunMarkers::Tier* RunMarkers::find_latest() const {
  const auto is_latest = [&](const Tier& tier) {
    return tier.run != 0 && std::all_of(tiers_.begin(), tiers_.end(), [&](const Tier& other) {
             const bool readable = other.state == State::kSound || other.state == State::kAbsent;
             return readable && (other.run == 0 || other.run == tier.run || contains(tier.known, other.run));
           });
  };
  const auto found = std::find_if(tiers_.begin(), tiers_.end(), is_latest);
  return found == tiers_.end() ? nullptr : &*found;
}

std::string RunMarkers::why_distrusted(const Tier& tier, const Tier* latest) const {
  if (tier.state == State::kForeign) return "its marker is of another version or not of ours";
  if (tier.state == State::kDamaged) return "its marker cannot be read";
  if (tier.state == State::kAbsent) return "it has no marker, and other tiers have one";
  if (latest) return tier.run == latest->run || tier.pending == latest->run ? "" : "it was left out of a run";
  const bool all_read = std::none_of(tiers_.begin(), tiers_.end(), [](const Tier& other) {
    return other.state == State::kDamaged || other.state == State::kForeign;
  });
  return all_read ? "it and another tier were used one without the other" : "the marker of another tier cannot be read";
}

void RunMarkers::learn(uint64_t run) {
  if (run == 0 || run == last_run_ || contains(known_, run)) return;
  if (known_.size() == kKnownMax) known_.erase(known_.begin());
  known_.push_back(run);
}

// First all learn which run begins, then that it has begun: whoever has learned the latter finds that the others know
// the former.
std::optional<RunMarkers::Unmarked> RunMarkers::begin(const std::vector<size_t>& tiers) {
  for (const size_t tier : tiers) {
    if (tiers_[tier].state != State::kForeign) continue;
    set_aside_.push_back(tiers_[tier].medium->set_aside_marker());
    tiers_[tier].state = State::kAbsent;
  }
  const uint64_t run = draw_id_();
  if (auto unmarked = write(tiers, run)) return unmarked;
  learn(std::exchange(last_run_, run));
  return write(tiers, 0);
}

std::optional<RunMarkers::Unmarked> RunMarkers::write(const std::vector<size_t>& tiers, uint64_t pending) {
  const std::string bytes = encode(last_run_, pending, known_);
  for (const size_t tier : tiers) {
    const Result<void> written = tiers_[tier].medium->write_marker(bytes);
    if (!written) return Unmarked{tier, written.error().message};
  }
  return std::nullopt;
}

}  // namespace nezha::cache
