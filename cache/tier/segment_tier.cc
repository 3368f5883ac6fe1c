// Segments of equal size, preallocated, written from front to back, reclaimed whole, oldest first.
// The bytes are written by pwrite and read through a shared mapping, so that errors of the medium are values on the
// way in, and a send from the mapping fails with EFAULT instead of a signal on the way out.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>

#include "cache/tier/tier.h"
#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr uint64_t kTierBytesMin = 16 * 1024 * 1024;
constexpr uint64_t kSegmentsMin = 8;
constexpr uint64_t kAlignBytes = 64;
constexpr size_t kOwnersMax = 65'536;  // records of one segment: bounds what a segment of tiny objects costs in memory
constexpr const char* kLockName = "nezha.lock";
constexpr const char* kSegmentPrefix = "nezha-segment-";

std::string errno_text() { return std::strerror(errno); }

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// One file and its mapping. Its use count beyond the tier's own reference says that somebody reads it.
struct Segment {
  Descriptor file;
  char* mapping = nullptr;
  uint64_t size_bytes = 0;
  uint32_t number = 0;
  uint32_t epoch = 0;
  uint64_t used_bytes = 0;
  uint32_t writers = 0;
  std::vector<uint64_t> owners;

  ~Segment() {
    if (mapping) ::munmap(mapping, size_bytes);
  }
};

class SegmentTier final : public Tier {
 public:
  SegmentTier(config::TierSettings settings, Reclaimed reclaimed, Descriptor lock)
      : settings_(std::move(settings)), reclaimed_(std::move(reclaimed)), lock_file_(std::move(lock)) {
    segment_bytes_ = std::min<uint64_t>(limits::kSegmentBytesMax, settings_.size_bytes / kSegmentsMin);
    segment_bytes_ -= segment_bytes_ % 4096;
    segments_max_ = settings_.size_bytes / segment_bytes_;
  }

  Result<std::unique_ptr<Reservation>> reserve(uint64_t size_bytes) override {
    std::lock_guard lock(mutex_);
    // Two segments are never promised: the open one and the one being reclaimed may be unusable.
    const uint64_t promised_max = (segments_max_ - 2) * segment_bytes_;
    if (size_bytes > promised_max - reserved_bytes_)
      return fail(Remedy::kGiveUp, "the tier is too small for the fills under way");
    reserved_bytes_ += size_bytes;
    return std::unique_ptr<Reservation>(std::make_unique<Held>(*this, size_bytes));
  }

  Result<Place> write(uint64_t owner, std::string_view bytes) override {
    NEZHA_CHECK(bytes.size() <= limits::kPieceBytes, "a record is at most one piece");
    std::shared_ptr<Segment> segment;
    Place place;
    {
      std::unique_lock lock(mutex_);
      // Again and again: while the lock was released, others may have opened a segment and filled it.
      while (!open_ || open_->used_bytes + bytes.size() > segment_bytes_ || open_->owners.size() >= kOwnersMax) {
        NEZHA_TRY(open_next(lock));
      }
      segment = open_;
      place = {segment->number, segment->epoch, static_cast<uint32_t>(segment->used_bytes),
               static_cast<uint32_t>(bytes.size())};
      segment->used_bytes += (bytes.size() + kAlignBytes - 1) / kAlignBytes * kAlignBytes;
      segment->owners.push_back(owner);
      ++segment->writers;
    }
    const Result<void> written = write_all(*segment, place.offset_bytes, bytes);
    std::lock_guard lock(mutex_);
    --segment->writers;
    if (!written) return written.error();
    return place;
  }

  std::optional<PinnedBytes> pin(const Place& place) override {
    std::lock_guard lock(mutex_);
    if (place.segment >= segments_.size()) return std::nullopt;
    const auto& segment = segments_[place.segment];
    if (!segment || segment->epoch != place.epoch) return std::nullopt;
    return PinnedBytes{{segment->mapping + place.offset_bytes, place.size_bytes}, segment};
  }

  bool reclaim_oldest() override {
    std::unique_lock lock(mutex_);
    const auto segment = take_oldest(lock);
    if (!segment) return false;
    free_.push_back(segment);
    return true;
  }

  uint64_t size_bytes() const override { return segments_max_ * segment_bytes_; }

  uint64_t used_bytes() const override {
    std::lock_guard lock(mutex_);
    uint64_t total = 0;
    for (const auto& segment : segments_) total += segment ? segment->used_bytes : 0;
    return total;
  }

 private:
  class Held final : public Reservation {
   public:
    Held(SegmentTier& tier, uint64_t size_bytes) : tier_(tier), size_bytes_(size_bytes) {}
    ~Held() override {
      std::lock_guard lock(tier_.mutex_);
      tier_.reserved_bytes_ -= size_bytes_;
    }

   private:
    SegmentTier& tier_;
    uint64_t size_bytes_;
  };

  static Result<void> write_all(const Segment& segment, uint64_t offset, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t put = ::pwrite(segment.file.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return fail(Remedy::kGiveUp, "writing to the tier: " + errno_text());
      bytes.remove_prefix(static_cast<size_t>(put));
      offset += static_cast<uint64_t>(put);
    }
    return ok();
  }

  // Seals the open segment and opens a free, a new, or the oldest reclaimable one. May release the lock meanwhile.
  Result<void> open_next(std::unique_lock<std::mutex>& lock) {
    if (open_) sealed_.push_back(std::exchange(open_, nullptr));
    if (!free_.empty()) {
      open_ = free_.front();
      free_.pop_front();
      return ok();
    }
    Error growth{Remedy::kGiveUp, "all segments of the tier are being read"};
    if (segments_.size() < segments_max_) {
      auto made = make_segment(static_cast<uint32_t>(segments_.size()));
      if (made) {
        segments_.push_back(made.value());
        open_ = made.value();
        return ok();
      }
      growth = made.error();  // no room on the device: go on with the segments there are
    }
    auto segment = take_oldest(lock);
    if (!segment) return growth;
    if (open_)
      free_.push_back(segment);  // another writer opened one while the lock was released
    else
      open_ = segment;
    return ok();
  }

  // Removes the oldest sealed segment nobody reads or writes from service, and tells the index.
  std::shared_ptr<Segment> take_oldest(std::unique_lock<std::mutex>& lock) {
    const auto idle = [](const std::shared_ptr<Segment>& segment) {
      return segment.use_count() == 2 && segment->writers == 0;
    };
    const auto found = std::find_if(sealed_.begin(), sealed_.end(), idle);
    if (found == sealed_.end()) return nullptr;
    std::shared_ptr<Segment> segment = std::move(*found);
    sealed_.erase(found);
    ++segment->epoch;
    segment->used_bytes = 0;
    const std::vector<uint64_t> owners = std::exchange(segment->owners, {});
    lock.unlock();
    reclaimed_(owners);
    lock.lock();
    return segment;
  }

  Result<std::shared_ptr<Segment>> make_segment(uint32_t number) {
    auto segment = std::make_shared<Segment>();
    const std::string name = kSegmentPrefix + std::to_string(number);
    const std::string path = settings_.path + "/" + name;
    const bool memory = settings_.medium == config::Medium::kMemory;
    const int fd = memory ? ::memfd_create(name.c_str(), MFD_CLOEXEC)
                          : ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) return fail(Remedy::kGiveUp, "opening " + path + ": " + errno_text());
    segment->file = Descriptor(fd);
    const auto give_up = [&](const std::string& what) {
      if (!memory) ::unlink(path.c_str());
      return fail(Remedy::kGiveUp, what);
    };
    const off_t size = static_cast<off_t>(segment_bytes_);
    // Memory is charged when it is used; a device must not run full under a mapping.
    const int reserved = memory ? (::ftruncate(fd, size) == 0 ? 0 : errno) : ::posix_fallocate(fd, 0, size);
    if (reserved != 0) return give_up("reserving " + path + ": " + std::strerror(reserved));
    void* mapping = ::mmap(nullptr, segment_bytes_, PROT_READ, MAP_SHARED, fd, 0);
    if (mapping == MAP_FAILED) return give_up("mapping " + path + ": " + errno_text());
    segment->mapping = static_cast<char*>(mapping);
    segment->size_bytes = segment_bytes_;
    segment->number = number;
    return segment;
  }

  const config::TierSettings settings_;
  const Reclaimed reclaimed_;
  Descriptor lock_file_;
  uint64_t segment_bytes_ = 0;
  uint64_t segments_max_ = 0;

  mutable std::mutex mutex_;
  uint64_t reserved_bytes_ = 0;
  std::vector<std::shared_ptr<Segment>> segments_;  // all, by number
  std::deque<std::shared_ptr<Segment>> sealed_;     // oldest first
  std::deque<std::shared_ptr<Segment>> free_;
  std::shared_ptr<Segment> open_;
};

// Makes the directory ours: exists, writable, locked, without segments of an earlier process.
Result<Descriptor> claim_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(Remedy::kFixInput, "cache.tiers: cannot create " + path + ": " + error.message());
  const std::string lock_path = path + "/" + kLockName;
  Descriptor lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0) return fail(Remedy::kFixInput, "cache.tiers: cannot write to " + path + ": " + errno_text());
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Remedy::kFixInput, "cache.tiers: " + path + " is in use by another nezha-cache");
  }
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.path().filename().string().starts_with(kSegmentPrefix)) std::filesystem::remove(entry.path(), error);
  }
  return lock;
}

}  // namespace

Result<std::unique_ptr<Tier>> make_segment_tier(const config::TierSettings& settings, Reclaimed reclaimed) {
  if (settings.size_bytes < kTierBytesMin) return fail(Remedy::kFixInput, "cache.tiers: a tier has at least 16Mi");
  Descriptor lock;
  if (settings.medium != config::Medium::kMemory) {
    NEZHA_TRY(lock, claim_directory(settings.path));
  }
  return std::unique_ptr<Tier>(std::make_unique<SegmentTier>(settings, std::move(reclaimed), std::move(lock)));
}

}  // namespace nezha::cache
