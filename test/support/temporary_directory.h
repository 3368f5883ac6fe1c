// TemporaryDirectory: a fresh directory that goes away with the value. Threads: values.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "nezha/base/check.h"

namespace nezha::test {

class TemporaryDirectory {
 public:
  explicit TemporaryDirectory(const std::string& under = std::filesystem::temp_directory_path().string())
      : path_(under + "/nezha-test-XXXXXX") {
    NEZHA_CHECK(::mkdtemp(path_.data()) != nullptr, "a directory can be made there");
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace nezha::test
