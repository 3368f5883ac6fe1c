#include "webhook/file_version.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace nezha::webhook {

FileVersion file_version(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {info.st_dev, info.st_ino, static_cast<uint64_t>(info.st_size),
          static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

Result<std::string> read_file(const std::string& path, uint64_t bytes_max) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Remedy::kFixInput, path + ": cannot be read: " + std::strerror(errno));
  std::string content(bytes_max + 1, '\0');
  file.read(content.data(), static_cast<std::streamsize>(content.size()));
  if (file.bad()) return fail(Remedy::kFixInput, path + ": cannot be read: " + std::strerror(errno));
  content.resize(static_cast<size_t>(file.gcount()));
  if (content.size() > bytes_max) {
    return fail(Remedy::kFixInput, path + ": larger than the limit of " + std::to_string(bytes_max) + " bytes");
  }
  return content;
}

}  // namespace nezha::webhook
