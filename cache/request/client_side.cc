#include "cache/request/client_side.h"

#include <algorithm>
#include <array>

#include "cache/classify/checksums.h"
#include "nezha/base/check.h"
#include "nezha/base/limits.h"
#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

constexpr size_t kLargeBytes = 64 * 1024;

}  // namespace

HeadOptions ClientSide::options(std::string cache_status) const {
  return {std::move(cache_status), !open_, deps_.clock.wall(), asks_for_checksums(request_.fields)};
}

net::Task<bool> ClientSide::read_request(bool& idle) {
  net::Stream& stream = client_.stream();
  const net::ScopedDeadline deadline(stream, deps_.clock.coarse_now() + limits::kClientIdleTimeout);
  // A client that has just been answered needs a moment: others first, and the next read finds its request. After a
  // large answer it needs longer than that.
  if (answered_ && !was_large_ && !client_.has_buffered()) co_await net::yield();
  if (deps_.draining) co_return false;  // drain() looks for those that rest, and has just been by
  answered_ = broke_ = was_large_ = false;
  idle = true;
  const Result<bool> first = co_await client_.await_bytes();
  idle = false;
  if (!first || !first.value()) co_return false;
  http::HeadStep step = client_.take_request_head(request_);
  if (step.kind == http::HeadStep::Kind::kNeedMore) {
    stream.set_deadline(deps_.clock.now() + limits::kHeadTimeout);
    Result<http::HeadStep> later = co_await client_.read_request_head(request_);
    if (!later || later.value().kind == http::HeadStep::Kind::kNeedMore) co_return false;
    step = std::move(later.value());
  }
  if (step.kind == http::HeadStep::Kind::kBad) {
    request_ = {};
    open_ = false;
    co_await refuse(step.status, step.reason, "detail=bad-request");
    co_return false;
  }
  open_ = request_.keep_alive && request_.minor_version >= 1 && !deps_.draining;
  client_.begin_body(request_.framing);
  co_return true;
}

bool ClientSide::send_now(std::string_view head, const PinnedBody* body) {
  NEZHA_CHECK(!answered_, "one final answer per request");
  const auto sent_bytes = begin_delivery(client_.stream(), head, body, deps_.store, deps_.send_meter);
  if (!sent_bytes) return false;
  answered_ = true;
  was_large_ = *sent_bytes >= kLargeBytes;
  deps_.metrics.sent_bytes.add(static_cast<double>(*sent_bytes));
  if (*sent_bytes == head.size() + (body ? body->range.size_bytes() : 0)) return true;
  is_rest_ = true;
  rest_head_ = head.substr(std::min(*sent_bytes, head.size()));
  rest_skip_bytes_ = *sent_bytes - std::min(*sent_bytes, head.size());
  return true;
}

net::Task<bool> ClientSide::send_rest(std::unique_ptr<BodySource> body, uint64_t size_bytes) {
  is_rest_ = false;
  Delivery delivery;
  delivery.head = std::move(rest_head_);
  delivery.body = std::move(body);
  if (delivery.body) delivery.length = size_bytes;
  const bool readable = co_await finish_answer(std::move(delivery));
  co_return readable;
}

net::Task<> ClientSide::finish_request() {
  // A body that the answer did not need is in the way of the next request.
  if (open_ && !client_.body_done()) open_ = co_await skip_request_body();
}

net::Task<> ClientSide::end() {
  // Never a clean short end.
  if (answered_ && !broken_) co_await linger(client_.stream(), deps_.clock);
  client_.stream().close(broken_);
}

net::Task<bool> ClientSide::send(Delivery delivery) {
  NEZHA_CHECK(!answered_, "one final answer per request");
  answered_ = true;
  const bool readable = co_await finish_answer(std::move(delivery));
  co_return readable;
}

net::Task<bool> ClientSide::finish_answer(Delivery delivery) {
  uint64_t sent_bytes = 0;
  const Result<void> sent =
      co_await deliver(client_.stream(), std::move(delivery), deps_.store, deps_.send_meter, deps_.clock, sent_bytes);
  deps_.metrics.sent_bytes.add(static_cast<double>(sent_bytes));
  if (sent) co_return true;
  deps_.metrics.aborted.add();
  deps_.log.debug("answer aborted",
                  {{"host", request_.fields.find("Host").value_or("")}, {"reason", sent.error().message}});
  broken_ = true;
  open_ = false;
  co_return sent.error().remedy != Remedy::kGiveUp;
}

net::Task<> ClientSide::refuse(int status, std::string text, std::string cache_status) {
  if (status < 500 && status != 421) open_ = false;
  if (!client_.body_done()) open_ = false;
  deps_.metrics.refused.add();
  Delivery delivery;
  delivery.head = own_answer(status, text, request_.method != "HEAD", options(std::move(cache_status)));
  co_await send(std::move(delivery));
}

bool ClientSide::expects_continue() const {
  const auto expect = request_.fields.find("Expect");
  return expect && request_.minor_version >= 1 && iequals(*expect, "100-continue");
}

net::Task<Result<size_t>> ClientSide::read_body(std::span<char> into) {
  const net::ScopedDeadline deadline(client_.stream(), deps_.clock.now() + limits::kBodyStallTimeout);
  auto got = co_await client_.read_body(into);
  broke_ |= !got;
  co_return got;
}

net::Task<Result<void>> ClientSide::interim(const http::ResponseHead& head) {
  if (request_.minor_version == 0) co_return ok();
  http::ResponseHead copy = head;
  http::remove_hop_by_hop(copy.fields);
  const std::string text = http::serialise(copy);
  const std::array<std::string_view, 1> pieces{text};
  const net::ScopedDeadline deadline(client_.stream(), deps_.clock.now() + limits::kBodyStallTimeout);
  const Result<void> sent = co_await client_.stream().write(pieces);
  // Others may wait for this answer: that its first reader left is seen when the answer is sent.
  if (!has_body()) co_return ok();
  co_return sent;
}

// Reads a small rest of a request body away; a large one costs more than a new connection.
net::Task<bool> ClientSide::skip_request_body() {
  std::vector<char> buffer(limits::kRelayBytes);
  size_t total = 0;
  while (!client_.body_done()) {
    const auto got = co_await read_body(buffer);
    if (!got || (total += got.value()) > limits::kRelayBytes * 4) co_return false;
  }
  co_return true;
}

}  // namespace nezha::cache
