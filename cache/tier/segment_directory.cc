#include "cache/tier/segment_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

constexpr const char* kLockName = "nezha.lock";
constexpr std::string_view kSegmentPrefix = "nezha-segment-";
constexpr const char* kSetAside = "set-aside";

}  // namespace

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);
}

std::string errno_text() { return std::strerror(errno); }

Result<SegmentDirectory> SegmentDirectory::claim(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(Remedy::kFixInput, "cache.tiers: cannot create " + path + ": " + error.message());
  const std::string lock_path = path + "/" + kLockName;
  FileHandle lock(::open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (lock.get() < 0) return fail(Remedy::kFixInput, "cache.tiers: cannot write to " + path + ": " + errno_text());
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return fail(Remedy::kFixInput, "cache.tiers: " + path + " is in use by another nezha-cache");
  }
  return SegmentDirectory(path, std::move(lock));
}

std::string SegmentDirectory::path_of(uint32_t number) const {
  char digits[16];
  std::snprintf(digits, sizeof digits, "%06u", number);
  return path_ + "/" + std::string(kSegmentPrefix) + digits;
}

Result<std::vector<uint32_t>> SegmentDirectory::list() const {
  std::vector<uint32_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator it(path_, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kSegmentPrefix)) continue;
    const auto number = parse_decimal(name.substr(kSegmentPrefix.size()));
    if (number && *number <= 0xFFFFFF && path_of(static_cast<uint32_t>(*number)) == it->path().string())
      numbers.push_back(static_cast<uint32_t>(*number));
  }
  if (error) return fail(Remedy::kFixInput, "cache.tiers: cannot list " + path_ + ": " + error.message());
  return numbers;
}

bool SegmentDirectory::remove(uint32_t number) const {
  if (::unlink(path_of(number).c_str()) != 0 && errno != ENOENT) return false;
  const FileHandle folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.get() >= 0 && ::fsync(folder.get()) == 0;
}

std::string SegmentDirectory::set_aside(uint32_t number) const {
  std::error_code error;
  const std::filesystem::path from = path_of(number);
  const std::filesystem::path folder = std::filesystem::path(path_) / kSetAside;
  std::filesystem::create_directories(folder, error);
  std::filesystem::path to = folder / from.filename();
  for (int copy = 1; std::filesystem::exists(to, error); ++copy)
    to = folder / (from.filename().string() + "." + std::to_string(copy));
  std::filesystem::rename(from, to, error);
  return error ? from.string() : to.string();
}

}  // namespace nezha::cache
