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
constexpr size_t kMarkerReadMax = 64 * 1024;  // far more than one has

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
  return sync();
}

bool SegmentDirectory::sync() const {
  const FileHandle folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder.get() >= 0 && ::fsync(folder.get()) == 0;
}

Result<std::string> SegmentDirectory::read_marker() const {
  const std::string path = marker_path();
  const FileHandle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    const Remedy remedy = errno == ENOENT ? Remedy::kAbsent : Remedy::kGiveUp;
    return fail(remedy, "opening " + path + ": " + errno_text());
  }
  std::string bytes(kMarkerReadMax, '\0');
  const ssize_t got = ::pread(file.get(), bytes.data(), bytes.size(), 0);
  if (got < 0) return fail(Remedy::kGiveUp, "reading " + path + ": " + errno_text());
  bytes.resize(static_cast<size_t>(got));
  return bytes;
}

Result<void> SegmentDirectory::write_marker(std::string_view bytes) const {
  const std::string path = marker_path();
  const std::string next = path + ".next";
  const FileHandle file(::open(next.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const auto size = static_cast<ssize_t>(bytes.size());
  if (file.get() < 0 || ::pwrite(file.get(), bytes.data(), bytes.size(), 0) != size ||
      ::ftruncate(file.get(), size) != 0 || ::fsync(file.get()) != 0)
    return fail(Remedy::kGiveUp, "writing " + next + ": " + errno_text());
  // The two change places where that can be done, so that a device that is full has room for the next one.
  if (::renameat2(AT_FDCWD, next.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) != 0 &&
      ::rename(next.c_str(), path.c_str()) != 0)
    return fail(Remedy::kGiveUp, "renaming " + next + ": " + errno_text());
  if (!sync()) return fail(Remedy::kGiveUp, "syncing " + path_ + ": " + errno_text());
  return ok();
}

std::string SegmentDirectory::set_aside_file(const std::string& file) const {
  std::error_code error;
  const std::filesystem::path from = file;
  const std::filesystem::path folder = std::filesystem::path(path_) / kSetAside;
  std::filesystem::create_directories(folder, error);
  std::filesystem::path to = folder / from.filename();
  for (int copy = 1; std::filesystem::exists(to, error); ++copy)
    to = folder / (from.filename().string() + "." + std::to_string(copy));
  std::filesystem::rename(from, to, error);
  return error ? from.string() : to.string();
}

}  // namespace nezha::cache
