// A fuzz target that must fail: it proves that a failing check ends the run, in fuzzing and in replay.
// Its corpus holds one input that passes and one that does not.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nezha/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  NEZHA_CHECK(text.substr(0, 2) != "!!", "the canary");
  return 0;
}
