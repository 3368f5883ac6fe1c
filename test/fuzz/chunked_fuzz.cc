// Fuzz target: any bytes as a chunked body, whole and in fragments whose sizes the first byte chooses: both ways give
// the same body, the same end and the same number of consumed bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nezha/base/check.h"
#include "nezha/http/parser.h"

namespace {

using Kind = nezha::http::ChunkedDecoder::Step::Kind;

struct Decoded {
  Kind end = Kind::kNeedMore;
  std::string body;
  size_t consumed_bytes = 0;
};

Decoded decode(std::string_view bytes, size_t fragment_bytes, size_t data_bytes_max) {
  nezha::http::ChunkedDecoder decoder;
  Decoded out;
  size_t have = 0;
  for (;;) {
    const auto step = decoder.decode(bytes.substr(out.consumed_bytes, have - out.consumed_bytes), data_bytes_max);
    NEZHA_CHECK(step.consumed_bytes <= have - out.consumed_bytes, "no more than was offered");
    out.consumed_bytes += step.consumed_bytes;
    if (step.kind == Kind::kData) {
      NEZHA_CHECK(!step.data.empty() && step.data.size() <= data_bytes_max, "data is some, and not too much");
      out.body += step.data;
      continue;
    }
    if (step.kind == Kind::kBad || step.kind == Kind::kEnd) {
      out.end = step.kind;
      return out;
    }
    if (step.consumed_bytes > 0) continue;
    if (have == bytes.size()) return out;
    have = std::min(have + fragment_bytes, bytes.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t fragment = 1 + data[0] % 16, data_max = 1 + data[0] / 16;
  const Decoded whole = decode(bytes, size, SIZE_MAX), pieces = decode(bytes, fragment, data_max);
  NEZHA_CHECK(whole.end == pieces.end && whole.body == pieces.body, "fragments change nothing");
  NEZHA_CHECK(whole.end != Kind::kEnd || whole.consumed_bytes == pieces.consumed_bytes, "nor where the body ends");
  return 0;
}
