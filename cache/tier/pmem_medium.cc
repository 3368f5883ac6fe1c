// Persistent memory through libpmem: stores bypass the CPU's caches and are drained before write() returns. Where the
// directory is not on persistent memory, pmem_is_pmem() says so and msync takes the drain's place.
#include <libpmem.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "cache/tier/format.h"
#include "cache/tier/media.h"
#include "cache/tier/paging.h"
#include "cache/tier/segment_directory.h"

namespace nezha::cache {
namespace {

class PmemBytes final : public SegmentBytes {
 public:
  PmemBytes(char* mapping, size_t size_bytes, bool is_pmem)
      : mapping_(mapping), size_bytes_(size_bytes), is_pmem_(is_pmem) {}
  ~PmemBytes() override { ::pmem_unmap(mapping_, size_bytes_); }

  Result<void> write(uint64_t offset, std::string_view bytes) override {
    if (is_pmem_) {
      ::pmem_memcpy_nodrain(mapping_ + offset, bytes.data(), bytes.size());
      ::pmem_drain();
      return ok();
    }
    // The page cache keeps it over the death of the process; only sync() promises more.
    std::memcpy(mapping_ + offset, bytes.data(), bytes.size());
    return ok();
  }

  Result<void> sync(uint64_t offset, uint64_t size) override {
    if (is_pmem_) return ok();  // write() has drained
    if (::pmem_msync(mapping_ + offset, size) != 0) return fail(Remedy::kGiveUp, "syncing the tier: " + errno_text());
    return ok();
  }

  // Persistent memory is read where it is; a file behind the page cache is brought in first.
  Result<void> load(uint64_t offset, uint64_t size) const override {
    return is_pmem_ ? Result<void>(ok()) : paging::load(mapping_, offset, size, -1);
  }
  void prefetch(uint64_t offset, uint64_t size) const override {
    if (!is_pmem_) paging::prefetch(mapping_, offset, size);
  }
  bool is_resident(uint64_t offset, uint64_t size) const override {
    return is_pmem_ || paging::is_resident(mapping_, offset, size);
  }
  std::string_view data() const override { return {mapping_, size_bytes_}; }

 private:
  char* mapping_;
  size_t size_bytes_;
  bool is_pmem_;
};

class PmemMedium final : public Medium {
 public:
  explicit PmemMedium(SegmentDirectory directory) : directory_(std::move(directory)) {}
  bool durable() const override { return true; }
  std::string name() const override { return "pmem " + directory_.path(); }
  Result<std::vector<uint32_t>> list() override { return directory_.list(); }
  bool remove(uint32_t number) override { return directory_.remove(number); }
  std::string set_aside(uint32_t number) override { return directory_.set_aside(number); }
  Result<std::string> read_marker() override { return directory_.read_marker(); }
  Result<void> write_marker(std::string_view bytes) override { return directory_.write_marker(bytes); }
  std::string set_aside_marker() override { return directory_.set_aside_marker(); }

  Result<std::unique_ptr<SegmentBytes>> open(uint32_t number) override {
    const std::string path = directory_.path_of(number);
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return fail(Remedy::kGiveUp, "opening " + path + ": " + errno_text());
    if (status.st_size < static_cast<off_t>(format::kDataBegin)) return fail(Remedy::kAbsent, path + " is too short");
    return map(path, 0, 0);
  }

  Result<std::unique_ptr<SegmentBytes>> create(uint32_t number, uint64_t size_bytes) override {
    return map(directory_.path_of(number), size_bytes, PMEM_FILE_CREATE | PMEM_FILE_EXCL);
  }

 private:
  static Result<std::unique_ptr<SegmentBytes>> map(const std::string& path, uint64_t size_bytes, int flags) {
    size_t mapped = 0;
    int is_pmem = 0;
    void* mapping = ::pmem_map_file(path.c_str(), size_bytes, flags, 0600, &mapped, &is_pmem);
    if (!mapping) return fail(Remedy::kGiveUp, "mapping " + path + ": " + ::pmem_errormsg());
    return std::unique_ptr<SegmentBytes>(
        std::make_unique<PmemBytes>(static_cast<char*>(mapping), mapped, is_pmem != 0));
  }

  SegmentDirectory directory_;
};

}  // namespace

Result<std::unique_ptr<Medium>> make_pmem_medium(const std::string& path) {
  NEZHA_TRY(auto directory, SegmentDirectory::claim(path));
  return std::unique_ptr<Medium>(std::make_unique<PmemMedium>(std::move(directory)));
}

}  // namespace nezha::cache
