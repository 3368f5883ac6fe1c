// SegmentDirectory: the directory of one tier: its lock, its marker, and the names of its segments.
// Threads: any; the file system serialises.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nezha/base/result.h"

namespace nezha::cache {

// Owns a file descriptor.
class FileHandle {
 public:
  explicit FileHandle(int fd = -1) : fd_(fd) {}
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileHandle();
  int get() const { return fd_; }

 private:
  int fd_;
};

std::string errno_text();

class SegmentDirectory {
 public:
  // Creates the directory when it is missing and locks it. Fails with kFixInput.
  static Result<SegmentDirectory> claim(const std::string& path);
  const std::string& path() const { return path_; }
  std::string path_of(uint32_t number) const;
  Result<std::vector<uint32_t>> list() const;
  bool remove(uint32_t number) const;
  std::string set_aside(uint32_t number) const { return set_aside_file(path_of(number)); }
  // As those of Medium.
  Result<std::string> read_marker() const;
  Result<void> write_marker(std::string_view bytes) const;
  std::string set_aside_marker() const { return set_aside_file(marker_path()); }

 private:
  std::string marker_path() const { return path_ + "/nezha-run"; }
  std::string set_aside_file(const std::string& file) const;
  bool sync() const;  // the names, not the files
  SegmentDirectory(std::string path, FileHandle lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  FileHandle lock_;
};

}  // namespace nezha::cache
