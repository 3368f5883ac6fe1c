// FileMark: what changes when a file is written, replaced, or a mounted Secret's link is switched. Threads: values.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace nezha::cache {

struct FileMark {
  int64_t seconds = 0;
  int64_t nanoseconds = 0;
  uint64_t inode = 0;
  int64_t size_bytes = 0;
  friend bool operator==(const FileMark&, const FileMark&) = default;
};

// Of a file that is not there: that of none.
inline FileMark mark_of_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ino, info.st_size};
}

}  // namespace nezha::cache
