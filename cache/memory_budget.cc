#include "cache/memory_budget.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

// A limit file's number; "max" and absent files say nothing.
uint64_t limit_in(const char* path, uint64_t otherwise) {
  std::ifstream file(path);
  std::string text;
  if (!(file >> text)) return otherwise;
  return std::min(parse_decimal(text).value_or(otherwise), otherwise);
}

}  // namespace

uint64_t memory_limit_bytes() {
  uint64_t limit = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  limit = limit_in("/sys/fs/cgroup/memory.max", limit);
  return limit_in("/sys/fs/cgroup/memory/memory.limit_in_bytes", limit);
}

}  // namespace nezha::cache
