#include "cache/policy/policy.h"

#include <mutex>

#include "cache/policy/ghost.h"

namespace nezha::cache {
namespace {

constexpr size_t kGhostKeysMax = size_t{1} << 22;
constexpr uint64_t kProbationParts = 10;  // probation gets one tenth

// S3-FIFO by segments: newcomers pass through a small queue, what is read there or comes back soon goes to main.
class SegmentS3Fifo final : public Policy {
 public:
  explicit SegmentS3Fifo(uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes), ghost_(kGhostKeysMax) {}

  void on_request(uint64_t, uint64_t) override {}

  std::optional<Queue> admit(uint64_t key, uint64_t size_bytes, uint64_t free_bytes) override {
    const std::lock_guard lock(mutex_);
    // An object costs at least this much bookkeeping, whatever its size.
    mean_bytes_ += (static_cast<double>(size_bytes) - mean_bytes_) / 256;
    if (ghost_.take(key)) return Queue::kMain;
    // While the tier fills, only the first tenth needs to prove itself.
    if (free_bytes > 0 && admitted_bytes_ > capacity_bytes_ / kProbationParts) return Queue::kMain;
    admitted_bytes_ += size_bytes;
    return Queue::kProbation;
  }

  Queue victim(uint64_t probation_bytes, uint64_t main_bytes) override {
    const std::lock_guard lock(mutex_);
    ghost_.set_length(static_cast<size_t>(static_cast<double>(main_bytes) / (mean_bytes_ + 64)));
    segments_kept_in_row_ = kept_all_ ? segments_kept_in_row_ + 1 : 0;
    kept_all_ = true;
    return probation_bytes * kProbationParts > probation_bytes + main_bytes ? Queue::kProbation : Queue::kMain;
  }

  bool keep(uint64_t, uint64_t, Queue from, unsigned reads) override {
    const std::lock_guard lock(mutex_);
    const bool kept = segments_kept_in_row_ < 7 && reads > (from == Queue::kProbation ? 1U : 0U);
    kept_all_ = kept_all_ && kept;
    return kept;
  }

  void on_evicted(uint64_t key, uint64_t, Queue from) override {
    const std::lock_guard lock(mutex_);
    if (from == Queue::kProbation) ghost_.insert(key);
  }

  PolicyReport report() const override {
    const std::lock_guard lock(mutex_);
    PolicyReport report;
    report.live = "s3-fifo";
    report.memory_bytes = ghost_.memory_bytes();
    return report;
  }

 private:
  mutable std::mutex mutex_;
  uint64_t capacity_bytes_;
  uint64_t admitted_bytes_ = 0;
  double mean_bytes_ = 64.0 * 1024;
  unsigned segments_kept_in_row_ = 0;
  bool kept_all_ = false;
  GhostTable ghost_;
};

}  // namespace

std::unique_ptr<Policy> make_policy(uint64_t capacity_bytes, uint64_t /*seed*/) {
  return std::make_unique<SegmentS3Fifo>(capacity_bytes);
}

}  // namespace nezha::cache
