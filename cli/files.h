// Files of the command line: whole texts, "-" is standard input.
// Threads: one.
#pragma once

#include <string>

#include "nezha/base/result.h"

namespace nezha::cli {

inline constexpr size_t kManifestBytesMax = 64 << 20;

// Fails with kFixInput (absent, a folder, not readable, too large); the message names the file and the reason.
[[nodiscard]] Result<std::string> read_file(const std::string& path, size_t bytes_max = kManifestBytesMax);

// What a command prints; its own complaints go to standard error. Fails with kFixInput when it cannot be run or says
// that it failed.
[[nodiscard]] Result<std::string> read_command(const std::string& command);

// What messages call the file: "standard input" for "-".
std::string display_name(const std::string& path);

}  // namespace nezha::cli
