#include "cli/files.h"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>

namespace nezha::cli {
namespace {

struct Close {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};

Result<std::string> read_all(std::FILE* file, const std::string& name, size_t bytes_max) {
  std::string text;
  char buffer[64 * 1024];
  while (const size_t bytes = std::fread(buffer, 1, sizeof buffer, file)) {
    text.append(buffer, bytes);
    if (text.size() > bytes_max)
      return fail(Remedy::kFixInput, name + " is larger than " + std::to_string(bytes_max >> 20) + " MiB");
  }
  if (std::ferror(file)) return fail(Remedy::kFixInput, "cannot read " + name + ": " + std::strerror(errno));
  return text;
}

}  // namespace

std::string display_name(const std::string& path) { return path == "-" ? "standard input" : path; }

Result<std::string> read_file(const std::string& path, size_t bytes_max) {
  const std::unique_ptr<std::FILE, Close> file(path == "-" ? stdin : std::fopen(path.c_str(), "rb"));
  if (!file) return fail(Remedy::kFixInput, "cannot read " + path + ": " + std::strerror(errno));
  return read_all(file.get(), display_name(path), bytes_max);
}

Result<std::string> read_command(const std::string& command) {
  const std::string program = command.substr(0, command.find(' '));
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (!pipe) return fail(Remedy::kFixInput, "cannot run " + program + ": " + std::strerror(errno));
  auto text = read_all(pipe, program, SIZE_MAX);
  const int status = ::pclose(pipe);
  if (text && status != 0) return fail(Remedy::kFixInput, "\"" + command + "\" failed");
  return text;
}

}  // namespace nezha::cli
