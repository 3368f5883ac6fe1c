// Fuzz target: any bytes as a request head. Holds when the outcome does not depend on what lies behind the head, when
// what is accepted survives being written and read again, and when every refusal has a status and a reason.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"
#include "nezha/http/parser.h"

namespace nezha::http {
namespace {

using Kind = HeadStep::Kind;

void check_accepted(std::string_view bytes, const HeadStep& step, const RequestHead& head) {
  NEZHA_CHECK(step.consumed_bytes > 0 && step.consumed_bytes <= bytes.size(), "the head lies inside the bytes");
  NEZHA_CHECK(head.fields.size() <= limits::kHeadFieldsMax, "fields are limited");
  NEZHA_CHECK(head.minor_version <= 1, "only 1.0 and 1.1");
  NEZHA_CHECK(head.fields.count("Host") <= 1, "at most one Host");
  NEZHA_CHECK(!(head.fields.has("Content-Length") && head.fields.has("Transfer-Encoding")), "one framing");
  RequestHead again, alone;
  NEZHA_CHECK(parse_request_head(bytes.substr(0, step.consumed_bytes), alone).kind == Kind::kDone,
              "nothing behind matters");
  const std::string text = serialise(head);
  if (text.size() >= limits::kHeadBytesMax || head.minor_version == 0) return;
  const HeadStep second = parse_request_head(text, again);
  NEZHA_CHECK(second.kind == Kind::kDone && second.consumed_bytes == text.size(), "what we write can be read");
  NEZHA_CHECK(again.target == head.target && again.method == head.method, "the request line survives");
  NEZHA_CHECK(again.framing.kind == head.framing.kind && again.framing.length_bytes == head.framing.length_bytes,
              "everybody sees the same body");
  NEZHA_CHECK(serialise(again) == text, "the fields survive");
}

}  // namespace
}  // namespace nezha::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nezha::http;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  RequestHead head;
  const HeadStep step = parse_request_head(bytes, head);
  if (step.kind == HeadStep::Kind::kDone) check_accepted(bytes, step, head);
  if (step.kind == HeadStep::Kind::kBad) {
    NEZHA_CHECK(step.status == 400 || step.status == 431 || step.status == 501 || step.status == 505,
                "a known refusal");
    NEZHA_CHECK(!step.reason.empty(), "with a reason");
  }
  return 0;
}
