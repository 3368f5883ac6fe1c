#include "cache/tier/paging.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace nezha::cache::paging {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, newer than Debian 12's headers may be

std::pair<uint64_t, uint64_t> whole_pages(uint64_t offset, uint64_t size) {
  const uint64_t at = offset / kPageBytes * kPageBytes;
  return {at, offset + size - at};
}

Result<void> reading_failed() {
  return fail(Remedy::kGiveUp, std::string("reading the tier: ") + std::strerror(errno));
}

Result<void> read_through(int file, uint64_t offset, uint64_t size) {
  std::array<char, 64 * 1024> scratch;
  while (size > 0) {
    const size_t step = static_cast<size_t>(std::min<uint64_t>(size, scratch.size()));
    const ssize_t got = ::pread(file, scratch.data(), step, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return reading_failed();
    offset += static_cast<uint64_t>(got);
    size -= static_cast<uint64_t>(got);
  }
  return ok();
}

}  // namespace

Result<void> load(char* mapping, uint64_t offset, uint64_t size, int file) {
  const auto [at, length] = whole_pages(offset, size);
  while (::madvise(mapping + at, length, kPopulateRead) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) return file >= 0 ? read_through(file, offset, size) : ok();
    return reading_failed();
  }
  return ok();
}

void prefetch(char* mapping, uint64_t offset, uint64_t size) {
  const auto [at, length] = whole_pages(offset, size);
  ::madvise(mapping + at, length, MADV_WILLNEED);
}

bool is_resident(char* mapping, uint64_t offset, uint64_t size) {
  const auto [at, length] = whole_pages(offset, size);
  std::array<unsigned char, 512> in_core;
  for (uint64_t done = 0; done < length;) {
    const uint64_t step = std::min<uint64_t>(length - done, in_core.size() * kPageBytes);
    if (::mincore(mapping + at + done, step, in_core.data()) != 0) return false;
    const uint64_t count = (step + kPageBytes - 1) / kPageBytes;
    if (!std::all_of(in_core.begin(), in_core.begin() + count, [](unsigned char page) { return page & 1; }))
      return false;
    done += step;
  }
  return true;
}

Result<void> sync(char* mapping, uint64_t offset, uint64_t size) {
  const auto [at, length] = whole_pages(offset, size);
  if (::msync(mapping + at, length, MS_SYNC) != 0)
    return fail(Remedy::kGiveUp, std::string("syncing the tier: ") + std::strerror(errno));
  return ok();
}

}  // namespace nezha::cache::paging
