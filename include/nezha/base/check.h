// CHECK for broken invariants: prints where and what, then aborts, in release builds too.
// Not for bad input or a failing environment: those are Result values (result.h).
// Threads: any.
#pragma once

namespace nezha {

// Writes "file:line: check failed: text (detail)" to standard error and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* text, const char* detail) noexcept;

}  // namespace nezha

#define NEZHA_CHECK(condition, detail)                               \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::nezha::check_failed(__FILE__, __LINE__, #condition, detail); \
  } while (false)
