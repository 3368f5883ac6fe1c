// FileVersion: what tells one version of a file from another: identity, size and time. Also sees a mounted Secret or
// ConfigMap change, which the kubelet does by moving a symbolic link.
// Threads: any.
#pragma once

#include <cstdint>
#include <string>

#include "nezha/base/result.h"

namespace nezha::webhook {

struct FileVersion {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t modified_ns = 0;
  friend bool operator==(const FileVersion&, const FileVersion&) = default;
};

// All zero for a file that cannot be looked at.
FileVersion file_version(const std::string& path);

// The whole file. kFixInput: it cannot be read, or is larger than `bytes_max`.
[[nodiscard]] Result<std::string> read_file(const std::string& path, uint64_t bytes_max);

}  // namespace nezha::webhook
