// A file in the test's temporary folder, removed at the end.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace nezha::test {

class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content) {
    static int count = 0;
    path_ = ::testing::TempDir() + "nezha-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    write(content);
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(const std::string& content) const { std::ofstream(path_, std::ios::trunc) << content; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace nezha::test
