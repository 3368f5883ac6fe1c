#include "cache/deliver/deliver.h"

#include <array>
#include <utility>

#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr size_t kPiecesNow = 4;
constexpr size_t kTurnBytes = 1024 * 1024;
constexpr size_t kRunBytes = 2 * 1024 * 1024;
constexpr size_t kGatherPieces = 20;          // iovecs of one write
constexpr size_t kFileBytesMin = 64 * 1024;   // below, a copy is cheaper than a file's bookkeeping
constexpr size_t kGatherBytes = 1024 * 1024;  // and its size

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

// Bytes of one file.
struct FileBytes {
  explicit FileBytes(const PinnedBytes& first) : bytes(first.bytes), file(first.file), offset(first.file_offset()) {}
  bool takes(const PinnedBytes& piece) const {
    return piece.file == file && piece.bytes.data() == bytes.data() + bytes.size() && bytes.size() < kRunBytes;
  }
  void add(const PinnedBytes& piece) { bytes = {bytes.data(), bytes.size() + piece.bytes.size()}; }

  std::string_view bytes;
  int file;
  uint64_t offset;
};

// And the pieces that lie there behind one another, held.
struct FileRun {
  explicit FileRun(PinnedBytes first) : all(first) { pieces.push_back(std::move(first)); }
  void add(PinnedBytes piece) {
    all.add(piece);
    pieces.push_back(std::move(piece));
  }

  FileBytes all;
  std::vector<PinnedBytes> pieces;
};

// What one write sends: pieces, and those of the source among them.
struct Gathered {
  std::vector<std::string_view> pieces;
  std::vector<PinnedBytes> held;
  std::array<std::string, kGatherPieces> lines;  // chunk size lines
  size_t line_count = 0;
  size_t size_bytes = 0;
  std::optional<FileRun> large;     // what comes behind the pieces, to be sent by the cheaper way
  std::optional<PinnedBytes> next;  // behind that
  bool end = false;
  std::optional<uint64_t> promised_bytes;  // that are still to come

  void add(std::string_view bytes) {
    pieces.push_back(bytes);
    size_bytes += bytes.size();
  }
  void clear() {
    pieces.clear();
    held.clear();
    line_count = 0;
    size_bytes = 0;
    large.reset();
  }
  bool full() const {
    return next || size_bytes >= kGatherBytes || pieces.size() + 3 > kGatherPieces * 3 || line_count == kGatherPieces;
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

Result<void> keep_promise(Gathered& out, const PinnedBytes& got) {
  if (!out.promised_bytes) return ok();
  if (got.bytes.size() > *out.promised_bytes) return fail(Remedy::kGiveUp, "the body is longer than the head promised");
  if (got.bytes.empty() && *out.promised_bytes > 0)
    return fail(Remedy::kGiveUp, "the body is shorter than the head promised");
  *out.promised_bytes -= got.bytes.size();
  return ok();
}

// False: it belongs behind what was gathered.
bool add_piece(Gathered& out, PinnedBytes& got, bool chunked, bool files) {
  if (out.large) {
    const bool taken = out.large->all.takes(got);
    if (taken) out.large->add(std::move(got));
    return taken;
  }
  if (files && got.file >= 0 && got.bytes.size() >= kFileBytesMin) {
    out.large.emplace(std::move(got));
    return true;
  }
  if (chunked)
    add_chunk(out, got.bytes);
  else
    out.add(got.bytes);
  out.held.push_back(std::move(got));
  return true;
}

// Takes what the source has now.
Result<void> gather(BodySource& source, bool chunked, bool files, Gathered& out) {
  if (auto held = std::exchange(out.next, std::nullopt)) add_piece(out, *held, chunked, files);
  while (!out.full() && !out.end) {
    auto next = source.try_next();
    if (!next) return ok();
    if (!*next) return next->error();
    PinnedBytes& got = next->value();
    NEZHA_TRY(keep_promise(out, got));
    if (got.bytes.empty()) {
      out.end = true;
      if (chunked) out.add("0\r\n\r\n");
    } else if (!add_piece(out, got, chunked, files)) {
      out.next = std::move(got);
    }
  }
  return ok();
}

net::Task<Result<void>> make_all_ready(std::span<const PinnedBytes> pieces, Store& store) {
  for (const PinnedBytes& piece : pieces) {
    if (!store.is_ready(piece)) NEZHA_CO_DO(co_await store.make_ready(piece));
  }
  co_return ok();
}

// What a slow client has not taken yet may have left the memory meanwhile: sending it would stop the loop.
net::Task<Result<void>> wait_for_client(net::Stream& client, std::span<const PinnedBytes> held, Store& store,
                                        const Clock& clock) {
  {
    const net::ScopedDeadline deadline(client, clock.now() + limits::kBodyStallTimeout);
    NEZHA_CO_DO(co_await client.wait_writable());
  }
  co_return co_await make_all_ready(held, store);
}

net::Task<Result<void>> write_all(net::Stream& client, Gathered& out, Store& store, const Clock& clock) {
  std::span<std::string_view> left(out.pieces);
  bool waited = false;
  while (!left.empty()) {
    NEZHA_CO_TRY(const size_t sent, out.large ? client.try_write_more(left) : client.try_write(left));
    net::skip_bytes(left, sent);
    if (left.empty() || sent > 0) continue;
    waited = true;
    NEZHA_CO_DO(co_await wait_for_client(client, out.held, store, clock));
  }
  // What goes next was looked at before the wait.
  if (waited && out.large) NEZHA_CO_DO(co_await make_all_ready(out.large->pieces, store));
  co_return ok();
}

// One call to the kernel, by the way that costs less.
Result<size_t> try_send_run(net::Stream& client, const FileBytes& run, size_t skip_bytes, SendMeter& meter) {
  const std::string_view left = run.bytes.substr(skip_bytes);
  const SendMeter::Turn turn(meter);
  const Result<size_t> sent = turn.by_file() ? client.try_send_file(run.file, run.offset + skip_bytes, left.size())
                                             : client.try_write(std::span<const std::string_view>(&left, 1));
  if (sent) turn.done(sent.value());
  return sent;
}

net::Task<Result<void>> send_large(net::Stream& client, const FileRun& run, SendMeter& meter, Store& store,
                                   const Clock& clock) {
  size_t done_bytes = 0;
  std::span<const PinnedBytes> left(run.pieces);
  size_t left_at = 0;  // where the first of them begins
  while (done_bytes < run.all.bytes.size()) {
    NEZHA_CO_TRY(const size_t sent, try_send_run(client, run.all, done_bytes, meter));
    done_bytes += sent;
    if (done_bytes == run.all.bytes.size()) break;
    while (left_at + left.front().bytes.size() <= done_bytes) {
      left_at += left.front().bytes.size();
      left = left.subspan(1);
    }
    NEZHA_CO_DO(co_await wait_for_client(client, left, store, clock));
  }
  co_return ok();
}

}  // namespace

std::optional<size_t> begin_delivery(net::Stream& client, std::string_view head, const PinnedBody* body, Store& store,
                                     SendMeter& meter) {
  std::array<std::string_view, kPiecesNow + 1> pieces{head};
  size_t count = 1;
  const bool small = !body || (body->pieces.size() <= kPiecesNow && body->range.size_bytes() < kFileBytesMin);
  if (small && body) {
    for (const PinnedBytes& piece : body->pieces) {
      if (!store.is_ready(piece)) return std::nullopt;
      pieces[count++] = piece.bytes;
    }
  }
  if (small) {
    const Result<size_t> sent = client.try_write({pieces.data(), count});
    return sent ? std::optional(sent.value()) : std::nullopt;
  }
  const PinnedBytes& first = body->pieces.front();
  if (!client.sends_files() || first.file < 0 || first.bytes.size() < kFileBytesMin || !store.is_ready(first))
    return std::nullopt;
  FileBytes run(first);  // the caller holds them
  for (size_t i = 1; i < body->pieces.size() && run.takes(body->pieces[i]) && store.is_ready(body->pieces[i]); ++i)
    run.add(body->pieces[i]);
  const Result<size_t> sent_head = client.try_write_more({pieces.data(), 1});
  if (!sent_head) return std::nullopt;
  if (sent_head.value() < head.size()) return sent_head.value();
  // A failure is seen again when the rest is sent.
  const Result<size_t> sent = try_send_run(client, run, 0, meter);
  return head.size() + (sent ? sent.value() : 0);
}

std::unique_ptr<BodySource> make_pinned_source(Store& store, PinnedBody body) {
  return std::make_unique<PinnedSource>(store, std::move(body));
}

net::Task<Result<void>> deliver(net::Stream& client, Delivery delivery, Store& store, SendMeter& meter,
                                const Clock& clock, uint64_t& sent_bytes) {
  const bool files = client.sends_files() && !delivery.chunked;
  Gathered out;
  size_t turn_bytes = 0;
  out.add(delivery.head);
  out.end = !delivery.body;
  out.promised_bytes = delivery.length;
  for (;;) {
    if (out.next && !store.is_ready(*out.next)) NEZHA_CO_DO(co_await store.make_ready(*out.next));
    if (!out.end) {
      Result<void> gathered = gather(*delivery.body, delivery.chunked, files, out);
      if (!gathered) {
        // What came before the failure is good; it goes out, then the reset tells that it was not all.
        const Result<void> written = co_await write_all(client, out, store, clock);
        if (written && out.large) (void)co_await send_large(client, *out.large, meter, store, clock);
        co_return gathered.error();
      }
    }
    if (out.size_bytes > 0) {
      NEZHA_CO_DO(co_await write_all(client, out, store, clock));
      sent_bytes += out.size_bytes;
    } else if (!out.end && !out.large) {
      co_await delivery.body->wait();
    }
    if (out.large) {
      NEZHA_CO_DO(co_await send_large(client, *out.large, meter, store, clock));
      sent_bytes += out.large->all.bytes.size();
    }
    if (out.end) co_return ok();
    // A client that takes everything at once must not keep the loop from the others.
    if ((turn_bytes += out.size_bytes + (out.large ? out.large->all.bytes.size() : 0)) >= kTurnBytes) {
      turn_bytes = 0;
      co_await net::yield();
    }
    out.clear();
  }
}

}  // namespace nezha::cache
