#include "test/support/golden.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace nezha::test {
namespace {

bool updating() {
  const char* value = std::getenv("NEZHA_UPDATE_GOLDEN");
  return value && std::string(value) == "1";
}

std::string first_difference(const std::string& expected, const std::string& actual) {
  std::istringstream a(expected), b(actual);
  std::string line_a, line_b;
  for (int line = 1;; ++line) {
    const bool more_a = static_cast<bool>(std::getline(a, line_a)), more_b = static_cast<bool>(std::getline(b, line_b));
    if (!more_a && !more_b) return "they differ in line ends only";
    if (more_a != more_b || line_a != line_b)
      return "line " + std::to_string(line) + "\n  expected: " + (more_a ? line_a : "<end>") +
             "\n  actual:   " + (more_b ? line_b : "<end>");
  }
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

void expect_golden(const std::filesystem::path& path, const std::string& actual) {
  if (updating()) {
    std::ofstream(path, std::ios::binary) << actual;
    return;
  }
  ASSERT_TRUE(std::filesystem::exists(path)) << path << " is missing; NEZHA_UPDATE_GOLDEN=1 writes it:\n" << actual;
  const std::string expected = read_text(path);
  EXPECT_EQ(expected == actual, true) << path << ", " << first_difference(expected, actual)
                                      << "\nNEZHA_UPDATE_GOLDEN=1 refreshes it";
}

}  // namespace nezha::test
