// Golden files: expected text kept beside its input. NEZHA_UPDATE_GOLDEN=1 writes what came out instead of comparing;
// the change is then reviewed as a diff.
#pragma once

#include <filesystem>
#include <string>

namespace nezha::test {

// The text of a file; fails the test and gives "" when it cannot be read.
std::string read_text(const std::filesystem::path& path);

// Compares, and on a difference reports the first line that differs. A missing file is a difference.
void expect_golden(const std::filesystem::path& path, const std::string& actual);

}  // namespace nezha::test
