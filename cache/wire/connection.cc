#include "cache/wire/connection.h"

#include <algorithm>
#include <cstring>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr size_t kBufferBytes = 4096;  // grows up to a head's limit when needed

constexpr std::chrono::seconds kLingerMax{5};
constexpr size_t kLingerBytesMax = 16 * 1024 * 1024;

}  // namespace

net::Task<> linger(net::Stream& stream, const Clock& clock) {
  stream.shutdown_send();
  const net::ScopedDeadline deadline(stream, clock.now() + kLingerMax);
  std::vector<char> buffer(limits::kRelayBytes);
  for (size_t total = 0; total < kLingerBytesMax;) {
    const auto got = co_await stream.read_some(buffer);
    if (!got || got.value() == 0) co_return;
    total += got.value();
  }
}

Connection::Connection(std::unique_ptr<net::Stream> stream) : stream_(std::move(stream)) {}

// Where more bytes go, behind those that are buffered.
std::span<char> Connection::room() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (buffer_.empty()) buffer_.resize(kBufferBytes);
  if (end_ == buffer_.size()) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    } else {
      buffer_.resize(std::min(buffer_.size() * 2, limits::kHeadBytesMax + kBufferBytes));
    }
  }
  NEZHA_CHECK(end_ < buffer_.size(), "a parser asked for more than a head may hold");
  return {buffer_.data() + end_, buffer_.size() - end_};
}

net::Task<Result<size_t>> Connection::read_more() {
  NEZHA_CO_TRY(const size_t got, co_await stream_->read_some(room()));
  end_ += got;
  received_bytes_ += got;
  co_return got;
}

http::HeadStep Connection::take_request_head(http::RequestHead& into) {
  if (!has_buffered()) return {};
  http::HeadStep step = http::parse_request_head(buffered(), into);
  begin_ += step.consumed_bytes;
  return step;
}

net::Task<Result<http::HeadStep>> Connection::read_request_head(http::RequestHead& into) {
  for (;;) {
    http::HeadStep step = take_request_head(into);
    if (step.kind != http::HeadStep::Kind::kNeedMore) co_return step;
    NEZHA_CO_TRY(const size_t got, co_await read_more());
    if (got > 0) continue;
    if (has_buffered()) co_return fail(Remedy::kRetryLater, "the stream ended inside a request head");
    co_return http::HeadStep{};
  }
}

net::Task<Result<http::HeadStep>> Connection::read_response_head(bool to_head, http::ResponseHead& into) {
  for (;;) {
    if (has_buffered()) {
      http::HeadStep step = http::parse_response_head(buffered(), to_head, into);
      begin_ += step.consumed_bytes;
      if (step.kind != http::HeadStep::Kind::kNeedMore) co_return step;
    }
    NEZHA_CO_TRY(const size_t got, co_await read_more());
    if (got > 0) continue;
    if (has_buffered()) co_return fail(Remedy::kRetryLater, "the upstream ended its stream inside a response head");
    co_return http::HeadStep{};
  }
}

net::Task<Result<bool>> Connection::await_bytes() {
  if (has_buffered()) co_return true;
  NEZHA_CO_TRY(const size_t got, co_await stream_->read_some(room()));
  end_ += got;
  received_bytes_ += got;
  co_return got > 0;
}

void Connection::begin_body(const http::Framing& framing) {
  framing_ = framing;
  chunked_ = {};
  left_bytes_ = framing.length_bytes;
  if (framing.kind == http::Framing::Kind::kChunked && buffer_.size() < limits::kRelayBytes)
    buffer_.resize(limits::kRelayBytes);
  body_done_ = framing.kind == http::Framing::Kind::kNone ||
               (framing.kind == http::Framing::Kind::kLength && framing.length_bytes == 0);
}

net::Task<Result<size_t>> Connection::read_body(std::span<char> into) {
  using Kind = http::Framing::Kind;
  if (body_done_) co_return size_t{0};
  if (framing_.kind == Kind::kChunked) co_return co_await read_chunked(into);
  if (framing_.kind == Kind::kLength)
    into = into.first(static_cast<size_t>(std::min<uint64_t>(into.size(), left_bytes_)));
  size_t got = 0;
  if (has_buffered()) {
    got = std::min(into.size(), end_ - begin_);
    std::memcpy(into.data(), buffer_.data() + begin_, got);
    begin_ += got;
  } else {
    NEZHA_CO_TRY(got, co_await stream_->read_some(into));
    received_bytes_ += got;
  }
  if (got == 0) {
    if (framing_.kind == Kind::kLength) co_return fail(Remedy::kRetryLater, "the stream ended inside a body");
    body_done_ = true;
  }
  left_bytes_ -= framing_.kind == Kind::kLength ? got : 0;
  if (framing_.kind == Kind::kLength && left_bytes_ == 0) body_done_ = true;
  co_return got;
}

net::Task<Result<size_t>> Connection::read_chunked(std::span<char> into) {
  using Kind = http::ChunkedDecoder::Step::Kind;
  for (;;) {
    const auto step = chunked_.decode(buffered(), into.size());
    if (step.kind == Kind::kBad) co_return fail(Remedy::kFixInput, "a broken chunked body");
    if (step.kind == Kind::kData) {
      std::memcpy(into.data(), step.data.data(), step.data.size());
      begin_ += step.consumed_bytes;
      co_return step.data.size();
    }
    begin_ += step.consumed_bytes;
    if (step.kind == Kind::kEnd) {
      body_done_ = true;
      co_return size_t{0};
    }
    if (step.consumed_bytes > 0) continue;
    NEZHA_CO_TRY(const size_t got, co_await read_more());
    if (got == 0) co_return fail(Remedy::kRetryLater, "the stream ended inside a chunked body");
  }
}

}  // namespace nezha::cache
