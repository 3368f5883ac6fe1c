// Files of the command line: whole texts, "-" is standard input.
// Threads: one.
#pragma once

#include <string>

#include "nezha/base/result.h"

namespace nezha::cli {

// Fails with kFixInput (absent, a folder, not readable, over 64 MiB); the message names the file and the reason.
[[nodiscard]] Result<std::string> read_file(const std::string& path);

// What messages call the file: "standard input" for "-".
std::string display_name(const std::string& path);

}  // namespace nezha::cli
