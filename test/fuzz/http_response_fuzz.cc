// Fuzz target: any bytes as a response head, and what a cache then does with it: whether it may be stored, as what, and
// what goes back on the wire.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cache/classify/stored_head.h"
#include "cache/request/answers.h"
#include "nezha/base/check.h"
#include "nezha/http/parser.h"

namespace nezha::cache {
namespace {

using Kind = http::HeadStep::Kind;

void check_on_the_wire(const std::string& text, int status) {
  http::ResponseHead head;
  const auto step = http::parse_response_head(text, true, head);
  NEZHA_CHECK(step.kind == Kind::kDone || text.size() > 60'000, "what we write can be read");
  NEZHA_CHECK(step.kind != Kind::kDone || (head.status == status && step.consumed_bytes == text.size()), "as one head");
}

void check_store(const http::ResponseHead& response, bool ranged) {
  http::RequestHead request;
  request.fields.add("Accept", "*/*");
  const config::Upstream upstream;
  Classified classified;
  classified.upstream = &upstream;
  classified.kind = Classified::Kind::kLookUp;
  if (ranged) classified.range = http::RangeSpec{0, 9};
  const WallTime now = WallTime{} + std::chrono::hours(500'000);
  const config::Freshness freshness{config::Freshness::Mode::kTtl, std::chrono::seconds(60)};
  if (!store_refusal(classified, response, freshness, now).empty()) return;
  const auto head = make_stored_head(request, classified, response, now, now);
  NEZHA_CHECK(!head->control.no_store && !head->control.is_private, "never stored");
  NEZHA_CHECK(!head->fields.has("Set-Cookie") && !head->fields.has("Connection"), "never stored");
  const HeadOptions options{"hit", false, now};
  check_on_the_wire(stored_head_text(*head, 5, false, options), 200);
  if (head->total_bytes && *head->total_bytes > 0) check_on_the_wire(stored_partial_text(*head, {0, 1}, options), 206);
  const auto again = refreshed(*head, response.fields, cache::Credentials::kNone, now, now);
  NEZHA_CHECK(again->total_bytes == head->total_bytes, "a refresh keeps the bytes");
}

}  // namespace
}  // namespace nezha::cache

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nezha;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  http::ResponseHead head;
  for (const bool to_head : {false, true}) {
    const auto step = http::parse_response_head(bytes, to_head, head);
    if (step.kind != http::HeadStep::Kind::kDone) continue;
    NEZHA_CHECK(step.consumed_bytes > 0 && step.consumed_bytes <= size, "the head lies inside the bytes");
    NEZHA_CHECK(!to_head || head.framing.kind == http::Framing::Kind::kNone, "an answer to HEAD has no body");
    const auto framing = cache::relay_framing(head, 1);
    if (head.status >= 200 && head.minor_version == 1) {
      cache::check_on_the_wire(cache::relayed_head_text(head, framing, {"fwd=uri-miss", false, WallTime{}}),
                               head.status);
    }
    for (const bool ranged : {false, true}) cache::check_store(head, ranged);
  }
  return 0;
}
