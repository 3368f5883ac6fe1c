#include "cli/files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

namespace nezha::cli {
namespace {

constexpr size_t kBytesMax = 64 * 1024 * 1024;

struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

}  // namespace

std::string display_name(const std::string& path) { return path == "-" ? "standard input" : path; }

Result<std::string> read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) return fail(Remedy::kFixInput, "cannot read " + path + ": " + std::strerror(errno));
  std::string text;
  char buffer[64 * 1024];
  while (const size_t bytes = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, bytes);
    if (text.size() > kBytesMax) return fail(Remedy::kFixInput, display_name(path) + " is larger than 64 MiB");
  }
  if (std::ferror(file.get()))
    return fail(Remedy::kFixInput, "cannot read " + display_name(path) + ": " + std::strerror(errno));
  return text;
}

}  // namespace nezha::cli
