// Fuzz target: any bytes as a head record. What is accepted is written and read again as the same.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cache/index/head_record.h"
#include "nezha/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nezha;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto head = cache::decode_head(bytes, 1);
  if (!head) return 0;
  const std::string again = cache::encode_head(*head.value());
  NEZHA_CHECK(again.size() <= size, "no more than was read");
  const auto second = cache::decode_head(again, 1);
  NEZHA_CHECK(second.has_value(), "what we write can be read");
  NEZHA_CHECK(cache::encode_head(*second.value()) == again, "as the same");
  return 0;
}
