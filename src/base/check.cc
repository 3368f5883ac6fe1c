#include "nezha/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace nezha {

void check_failed(const char* file, int line, const char* text, const char* detail) noexcept {
  std::fprintf(stderr, "%s:%d: check failed: %s (%s)\n", file, line, text, detail);
  std::abort();
}

}  // namespace nezha
