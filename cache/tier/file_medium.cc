// Files of a directory: written by pwrite, read through a shared mapping. Plain memory is the same over memfd.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cache/tier/format.h"
#include "cache/tier/media.h"
#include "cache/tier/paging.h"
#include "cache/tier/segment_directory.h"

namespace nezha::cache {
namespace {

class MappedFile final : public SegmentBytes {
 public:
  MappedFile(FileHandle file, char* mapping, uint64_t size_bytes, bool reserve)
      : file_(std::move(file)), mapping_(mapping), size_bytes_(size_bytes), reserve_(reserve) {
    // Behind the end there is nothing to punch: it only tells whether the file system can.
    can_renew_ = ::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(size_bytes_),
                             static_cast<off_t>(format::kPageBytes)) == 0;
  }
  ~MappedFile() override { ::munmap(mapping_, size_bytes_); }

  Result<void> write(uint64_t offset, std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t put = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (put < 0 && errno == EINTR) continue;
      if (put <= 0) return fail(Remedy::kGiveUp, "writing to the tier: " + errno_text());
      bytes.remove_prefix(static_cast<size_t>(put));
      offset += static_cast<uint64_t>(put);
    }
    return ok();
  }

  Result<void> sync(uint64_t offset, uint64_t size) override { return paging::sync(mapping_, offset, size); }

  Result<void> load(uint64_t offset, uint64_t size) const override {
    return paging::load(mapping_, offset, size, file_.get());
  }
  void prefetch(uint64_t offset, uint64_t size) const override { paging::prefetch(mapping_, offset, size); }
  bool is_resident(uint64_t offset, uint64_t size) const override {
    return paging::is_resident(mapping_, offset, size);
  }
  std::string_view data() const override { return {mapping_, size_bytes_}; }
  int file() const override { return can_renew_ ? file_.get() : -1; }

  // Fresh pages under the same file: the old ones live on in the sockets that still send them.
  Result<void> renew() override {
    if (!can_renew_) return ok();  // it was never sent from
    const auto size = static_cast<off_t>(size_bytes_);
    if (::fallocate(file_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size) != 0)
      return fail(Remedy::kGiveUp, "renewing a segment: " + errno_text());
    if (const int error = reserve_ ? ::posix_fallocate(file_.get(), 0, size) : 0; error != 0)
      return fail(Remedy::kGiveUp, std::string("renewing a segment: ") + std::strerror(error));
    return ok();
  }

 private:
  FileHandle file_;
  char* mapping_;
  uint64_t size_bytes_;
  bool reserve_;  // the medium has a size of its own
  bool can_renew_;
};

Result<std::unique_ptr<SegmentBytes>> map(FileHandle file, uint64_t size_bytes, const std::string& path, bool reserve) {
  void* mapping = ::mmap(nullptr, size_bytes, PROT_READ, MAP_SHARED, file.get(), 0);
  if (mapping == MAP_FAILED) return fail(Remedy::kGiveUp, "mapping " + path + ": " + errno_text());
  return std::unique_ptr<SegmentBytes>(
      std::make_unique<MappedFile>(std::move(file), static_cast<char*>(mapping), size_bytes, reserve));
}

class FileMedium final : public Medium {
 public:
  explicit FileMedium(SegmentDirectory directory) : directory_(std::move(directory)) {}
  bool durable() const override { return true; }
  std::string name() const override { return "nvme " + directory_.path(); }
  Result<std::vector<uint32_t>> list() override { return directory_.list(); }
  bool remove(uint32_t number) override { return directory_.remove(number); }
  std::string set_aside(uint32_t number) override { return directory_.set_aside(number); }
  Result<std::string> read_marker() override { return directory_.read_marker(); }
  Result<void> write_marker(std::string_view bytes) override { return directory_.write_marker(bytes); }
  std::string set_aside_marker() override { return directory_.set_aside_marker(); }

  Result<std::unique_ptr<SegmentBytes>> open(uint32_t number) override {
    const std::string path = directory_.path_of(number);
    FileHandle file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    struct stat status {};
    if (file.get() < 0 || ::fstat(file.get(), &status) != 0)
      return fail(Remedy::kGiveUp, "opening " + path + ": " + errno_text());
    if (status.st_size < static_cast<off_t>(format::kDataBegin)) return fail(Remedy::kAbsent, path + " is too short");
    return map(std::move(file), static_cast<uint64_t>(status.st_size), path, true);
  }

  Result<std::unique_ptr<SegmentBytes>> create(uint32_t number, uint64_t size_bytes) override {
    const std::string path = directory_.path_of(number);
    FileHandle file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) return fail(Remedy::kGiveUp, "opening " + path + ": " + errno_text());
    // A device must not run full under a mapping.
    if (const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(size_bytes)); error != 0) {
      ::unlink(path.c_str());
      return fail(Remedy::kGiveUp, "reserving " + path + ": " + std::strerror(error));
    }
    return map(std::move(file), size_bytes, path, true);
  }

 private:
  SegmentDirectory directory_;
};

class MemoryMedium final : public Medium {
 public:
  bool durable() const override { return false; }
  std::string name() const override { return "memory"; }
  Result<std::vector<uint32_t>> list() override { return std::vector<uint32_t>(); }
  bool remove(uint32_t) override { return true; }
  std::string set_aside(uint32_t) override { return ""; }
  Result<std::string> read_marker() override { return fail(Remedy::kAbsent, "memory starts empty"); }
  Result<void> write_marker(std::string_view) override { return ok(); }
  std::string set_aside_marker() override { return ""; }
  Result<std::unique_ptr<SegmentBytes>> open(uint32_t) override { return fail(Remedy::kAbsent, "memory starts empty"); }

  Result<std::unique_ptr<SegmentBytes>> create(uint32_t number, uint64_t size_bytes) override {
    const std::string name = "nezha-segment-" + std::to_string(number);
    FileHandle file(::memfd_create(name.c_str(), MFD_CLOEXEC));
    // Memory is charged when it is used.
    if (file.get() < 0 || ::ftruncate(file.get(), static_cast<off_t>(size_bytes)) != 0)
      return fail(Remedy::kGiveUp, "reserving " + name + ": " + errno_text());
    return map(std::move(file), size_bytes, name, false);
  }
};

}  // namespace

Result<std::unique_ptr<Medium>> make_file_medium(const std::string& path) {
  NEZHA_TRY(auto directory, SegmentDirectory::claim(path));
  return std::unique_ptr<Medium>(std::make_unique<FileMedium>(std::move(directory)));
}

std::unique_ptr<Medium> make_memory_medium() { return std::make_unique<MemoryMedium>(); }

Result<std::unique_ptr<Medium>> make_medium(const config::TierSettings& settings) {
  switch (settings.medium) {
    case config::Medium::kMemory:
      return make_memory_medium();
    case config::Medium::kPmem:
      return make_pmem_medium(settings.path);
    case config::Medium::kNvme:
      return make_file_medium(settings.path);
  }
  return fail(Remedy::kFixInput, "cache.tiers: unknown medium");
}

}  // namespace nezha::cache
