#include "cache/deliver/deliver.h"

#include <array>

#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr size_t kTurnBytes = 8 * 1024 * 1024;
constexpr size_t kGatherPieces = 20;          // iovecs of one write
constexpr size_t kFileBytesMin = 64 * 1024;   // below, a copy is cheaper than a file's bookkeeping
constexpr size_t kGatherBytes = 1024 * 1024;  // and its size: what a client must take within the stall time

class PinnedSource final : public BodySource {
 public:
  PinnedSource(Store& store, PinnedBody body) : store_(store), body_(std::move(body)) {}
  std::optional<Result<PinnedBytes>> try_next() override {
    if (unreadable_) return Result<PinnedBytes>(*unreadable_);
    if (next_ == body_.pieces.size()) return Result<PinnedBytes>(PinnedBytes{});
    if (!made_ready_ && (cold_ || !store_.is_ready(body_.pieces[next_]))) return std::nullopt;
    made_ready_ = false;
    return Result<PinnedBytes>(std::move(body_.pieces[next_++]));
  }
  net::Task<> wait() override {
    // Those behind it come from the medium as well, read ahead: each is compared with its checksum.
    cold_ = true;
    const Result<void> ready = co_await store_.make_ready(body_.pieces, next_);
    if (!ready) unreadable_ = ready.error();
    made_ready_ = true;
  }

 private:
  Store& store_;
  PinnedBody body_;
  size_t next_ = 0;
  bool cold_ = false;        // a piece of it was not in memory
  bool made_ready_ = false;  // the next one
  std::optional<Error> unreadable_;
};

// What one write sends: pieces and the pins that keep them in place.
struct Gathered {
  std::vector<std::string_view> pieces;
  std::vector<std::shared_ptr<const void>> pins;
  std::array<std::string, kGatherPieces> lines;  // chunk size lines
  size_t line_count = 0;
  size_t size_bytes = 0;
  std::optional<PinnedBytes> large;  // what comes behind the pieces, to be sent by the cheaper way
  bool end = false;
  std::optional<uint64_t> promised_bytes;  // that are still to come

  void add(std::string_view bytes) {
    pieces.push_back(bytes);
    size_bytes += bytes.size();
  }
  void clear() {
    pieces.clear();
    pins.clear();
    line_count = 0;
    size_bytes = 0;
    large.reset();
  }
  bool full() const {
    return large || size_bytes >= kGatherBytes || pieces.size() + 3 > kGatherPieces * 3 || line_count == kGatherPieces;
  }
};

void add_chunk(Gathered& out, std::string_view bytes) {
  char line[20];
  std::snprintf(line, sizeof line, "%zx\r\n", bytes.size());
  std::string& kept = out.lines[out.line_count++];
  kept = line;
  out.add(kept);
  out.add(bytes);
  out.add("\r\n");
}

// Takes what the source has now.
Result<void> gather(BodySource& source, bool chunked, bool files, Gathered& out) {
  while (!out.full()) {
    auto next = source.try_next();
    if (!next) return ok();
    if (!*next) return next->error();
    PinnedBytes& got = next->value();
    if (out.promised_bytes && got.bytes.size() > *out.promised_bytes)
      return fail(Remedy::kGiveUp, "the body is longer than the head promised");
    if (out.promised_bytes) *out.promised_bytes -= got.bytes.size();
    if (got.bytes.empty()) {
      if (out.promised_bytes.value_or(0) > 0)
        return fail(Remedy::kGiveUp, "the body is shorter than the head promised");
      out.end = true;
      if (chunked) out.add("0\r\n\r\n");
      return ok();
    }
    if (files && got.file >= 0 && got.bytes.size() >= kFileBytesMin) {
      out.large = std::move(got);
      return ok();
    }
    if (chunked)
      add_chunk(out, got.bytes);
    else
      out.add(got.bytes);
    out.pins.push_back(std::move(got.pin));
  }
  return ok();
}

net::Task<Result<void>> write_all(net::Stream& client, Gathered& out, const Clock& clock) {
  std::span<std::string_view> left(out.pieces);
  while (!left.empty()) {
    NEZHA_CO_TRY(const size_t sent, out.large ? client.try_write_more(left) : client.try_write(left));
    net::skip_bytes(left, sent);
    if (left.empty()) break;
    if (sent > 0) continue;
    const net::ScopedDeadline deadline(client, clock.now() + limits::kBodyStallTimeout);
    NEZHA_CO_DO(co_await client.write(left));
    break;
  }
  co_return ok();
}

net::Task<Result<void>> send_large(net::Stream& client, const PinnedBytes& piece, SendMeter& meter,
                                   const Clock& clock) {
  std::string_view left = piece.bytes;
  while (!left.empty()) {
    const uint64_t offset = piece.file_offset() + static_cast<uint64_t>(left.data() - piece.bytes.data());
    const SendMeter::Turn turn(meter);
    const Result<size_t> sent = turn.by_file() ? client.try_send_file(piece.file, offset, left.size())
                                               : client.try_write(std::span<const std::string_view>(&left, 1));
    if (!sent) co_return sent.error();
    turn.done(sent.value());
    left.remove_prefix(sent.value());
    if (left.empty() || sent.value() > 0) continue;
    const net::ScopedDeadline deadline(client, clock.now() + limits::kBodyStallTimeout);
    NEZHA_CO_DO(co_await client.wait_writable());
  }
  co_return ok();
}

}  // namespace

std::unique_ptr<BodySource> make_pinned_source(Store& store, PinnedBody body) {
  return std::make_unique<PinnedSource>(store, std::move(body));
}

net::Task<Result<void>> deliver(net::Stream& client, Delivery delivery, SendMeter& meter, const Clock& clock,
                                uint64_t& sent_bytes) {
  const bool files = client.sends_files() && !delivery.chunked;
  Gathered out;
  size_t turn_bytes = 0;
  out.add(delivery.head);
  out.end = !delivery.body;
  out.promised_bytes = delivery.length;
  for (;;) {
    if (!out.end) {
      Result<void> gathered = gather(*delivery.body, delivery.chunked, files, out);
      if (!gathered) {
        // What came before the failure is good; it goes out, then the reset tells that it was not all.
        (void)co_await write_all(client, out, clock);
        co_return gathered.error();
      }
    }
    if (out.size_bytes > 0) {
      NEZHA_CO_DO(co_await write_all(client, out, clock));
      sent_bytes += out.size_bytes;
    } else if (!out.end && !out.large) {
      co_await delivery.body->wait();
    }
    if (out.large) {
      NEZHA_CO_DO(co_await send_large(client, *out.large, meter, clock));
      sent_bytes += out.large->bytes.size();
    }
    if (out.end) co_return ok();
    // A client that takes everything at once must not keep the loop from the others.
    if ((turn_bytes += out.size_bytes + (out.large ? out.large->bytes.size() : 0)) >= kTurnBytes) {
      turn_bytes = 0;
      co_await net::yield();
    }
    out.clear();
  }
}

}  // namespace nezha::cache
