// What a test takes from the environment: seeds to replay, steps to run longer. Threads: any.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "nezha/base/text.h"

namespace nezha::test {

// The number in the variable; `otherwise` when there is none.
inline uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? parse_decimal(text).value_or(otherwise) : otherwise;
}

}  // namespace nezha::test
