#include "cache/fill/fill.h"

#include <algorithm>
#include <utility>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
// One client's place in the fill.
class Fill::Reader final : public BodySource {
 public:
  Reader(std::shared_ptr<Fill> fill, uint64_t position, bool may_be_cut)
      : fill_(std::move(fill)), may_be_cut_(may_be_cut), position_(position) {}
  ~Reader() override {
    {
      std::lock_guard lock(fill_->mutex_);
      std::erase(fill_->readers_, this);
      fill_->release_passed();
    }
    fill_->consumed_.notify_all();
  }

  std::optional<Result<PinnedBytes>> try_next() override {
    Fill& fill = *fill_;
    std::unique_lock lock(fill.mutex_);
    version_ = fill.progress_.version();
    if (cut_) return Result<PinnedBytes>(fail(Remedy::kRetryHere, "too slow for those who read the same relay"));
    if (unreadable_) return Result<PinnedBytes>(*unreadable_);
    if (position_ < fill.available_) {
      PinnedBytes out = bytes_here();
      // What a slow reader comes to late may have left the memory meanwhile.
      if (!fill.deps_.store.is_ready(out)) {
        cold_ = std::move(out);
        return std::nullopt;
      }
      position_ += out.bytes.size();
      fill.release_passed();
      const bool relay = !fill.storing_;
      lock.unlock();
      if (relay) fill.consumed_.notify_all();
      return out;
    }
    if (fill.failed_) return Result<PinnedBytes>(*fill.failed_);
    if (fill.complete_) return Result<PinnedBytes>(PinnedBytes{});
    return std::nullopt;
  }

  net::Task<> wait() override {
    if (!cold_) {
      co_await fill_->progress_.wait(version_);
      co_return;
    }
    const PinnedBytes piece = std::move(*cold_);
    cold_.reset();
    const Result<void> ready = co_await fill_->deps_.store.make_ready(piece);
    if (!ready) unreadable_ = ready.error();
  }
  uint64_t position() const { return position_; }
  bool may_be_cut() const { return may_be_cut_; }
  void cut() { cut_ = true; }  // REQUIRES: the fill's mutex is held

 private:
  PinnedBytes bytes_here() const {
    const auto& pieces = fill_->pieces_;
    const auto after = std::upper_bound(pieces.begin(), pieces.end(), position_,
                                        [](uint64_t at, const Piece& piece) { return at < piece.offset; });
    NEZHA_CHECK(after != pieces.begin(), "a piece ahead of a reader is kept");
    const Piece& piece = *std::prev(after);
    PinnedBytes out =
        piece.stored ? *piece.stored : PinnedBytes{{piece.buffer.get(), piece.size_bytes}, piece.buffer, {}};
    NEZHA_CHECK(out.pin != nullptr && position_ < piece.offset + piece.size_bytes, "a reader is inside its piece");
    out.bytes = out.bytes.substr(static_cast<size_t>(position_ - piece.offset));
    return out;
  }

  const std::shared_ptr<Fill> fill_;
  const bool may_be_cut_;
  bool cut_ = false;
  uint64_t position_;
  uint64_t version_ = 0;
  std::optional<PinnedBytes> cold_;
  std::optional<Error> unreadable_;
};

Fill::Fill(FillDeps deps, CacheKey key, std::shared_ptr<FillTicket> ticket, StoredHeadPtr head, uint64_t begin,
           std::optional<uint64_t> end)
    : deps_(deps),
      key_(std::move(key)),
      ticket_(std::move(ticket)),
      head_(std::move(head)),
      begin_(begin),
      end_(end),
      available_(begin) {
  refusal_ = decide_to_store();
  storing_ = refusal_ == nullptr;
}

Fill::~Fill() {
  if (buffer_bytes_ > 0) deps_.store.give_fill_memory(buffer_bytes_);
}

std::unique_ptr<BodySource> Fill::reader(uint64_t position, bool may_be_cut) {
  std::lock_guard lock(mutex_);
  if (failed_ || gone_) return nullptr;
  auto reader = std::make_unique<Reader>(shared_from_this(), position, may_be_cut);
  readers_.push_back(reader.get());
  return reader;
}

net::Task<> Fill::run(UpstreamPool& pool, net::Gate& gate, Exchange exchange, Ranges more) {
  const auto self = shared_from_this();
  // A length that was announced is what proves a piece to be of the body.
  by_pieces_ =
      head_->strong() && head_->total_bytes && end_ && exchange.head.framing.kind == http::Framing::Kind::kLength;
  if (!by_pieces_) more.reset();
  Result<void> result = co_await read_all(pool, gate, exchange, std::move(more));
  if (!result) refuse_readers(result.error());
  co_await writing_done(0);
  if (result && exchange.connection && exchange.connection->body_done() && exchange.head.keep_alive)
    pool.release(exchange.origin, std::move(exchange.connection));
  exchange.connection.reset();
  if (result && storing()) co_await publish_whole();
  finish(result);
}

// Admission, memory for the pieces, and room in the tier, in that order.
const char* Fill::decide_to_store() {
  const uint64_t size_bytes = end_ ? *end_ - begin_ : limits::kPieceBytes;
  const auto queue = deps_.store.admit(key_, size_bytes);
  if (!queue) {
    deps_.not_admitted.add();
    return "not-admitted";
  }
  queue_ = *queue;
  const uint64_t wanted = std::min<uint64_t>(size_bytes, (limits::kFillPiecesUnwritten + 1) * limits::kPieceBytes);
  if (!deps_.store.take_fill_memory(wanted)) return "no-memory";
  buffer_bytes_ = wanted;
  if (end_) reservation_ = deps_.store.reserve(size_bytes);
  return end_ && !reservation_ ? "no-room" : nullptr;
}

// A body of unknown length promises itself twice what it has, step by step.
bool Fill::reserve_ahead() {
  if (end_ || available_ - begin_ + limits::kPieceBytes <= reserved_bytes_) return true;
  reserved_bytes_ = std::max<uint64_t>(reserved_bytes_ * 2, limits::kPieceBytes);
  reservation_.reset();
  reservation_ = deps_.store.reserve(reserved_bytes_);
  return reservation_ != nullptr;
}

// Reads until the piece is full or the body ends. The bytes are visible to readers as they arrive.
net::Task<Result<void>> Fill::fill_piece(UpstreamPool& pool, Connection& connection, http::ByteRange& left,
                                         size_t piece_bytes, std::string_view already) {
  const uint64_t offset = left.begin;
  const std::shared_ptr<char[]> buffer = deps_.buffers.get(piece_bytes);
  {
    std::lock_guard lock(mutex_);
    const auto behind = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                         [](uint64_t at, const Piece& piece) { return at < piece.offset; });
    pieces_.insert(behind, {offset, already.size(), false, buffer, std::nullopt, {}});
    std::copy(already.begin(), already.end(), buffer.get());
    advance();
  }
  size_t filled = already.size();
  left.begin += filled;
  while (filled < piece_bytes && !connection.body_done()) {
    const net::ScopedDeadline deadline(connection.stream(), pool.clock().now() + limits::kBodyStallTimeout);
    NEZHA_CO_TRY(const size_t got, co_await connection.read_body({buffer.get() + filled, piece_bytes - filled}));
    if (got == 0) break;
    filled += got;
    left.begin += got;
    {
      std::lock_guard lock(mutex_);
      piece_at(offset)->size_bytes = filled;
      advance();
    }
    progress_.notify_all();
  }
  finish_piece(offset);
  co_return ok();
}

// No more comes into it. An empty one leaves its place to another.
void Fill::finish_piece(uint64_t offset) {
  bool in_lanes = false;
  {
    std::lock_guard lock(mutex_);
    const auto piece = piece_at(offset);
    piece->full = true;
    if (piece->size_bytes == 0)
      pieces_.erase(piece);
    else
      advance();
    in_lanes = in_lanes_;
  }
  if (!in_lanes) return;
  // What lies behind it may have come before it: readers go on, and so do lanes that wait for their turn.
  progress_.notify_all();
  consumed_.notify_all();
  lanes_changed_.notify_all();
}

std::deque<Fill::Piece>::iterator Fill::piece_at(uint64_t offset) {
  const auto piece = std::lower_bound(pieces_.begin(), pieces_.end(), offset,
                                      [](const Piece& candidate, uint64_t at) { return candidate.offset < at; });
  NEZHA_CHECK(piece != pieces_.end() && piece->offset == offset, "a piece in use is kept");
  return piece;
}

// Beyond a piece that is still being filled there is a gap, whatever lies behind it.
void Fill::advance() {
  auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), available_,
                                [](uint64_t at, const Piece& candidate) { return at < candidate.offset; });
  if (piece != pieces_.begin()) --piece;
  for (; piece != pieces_.end() && piece->offset <= available_; ++piece) {
    available_ = std::max(available_, piece->offset + piece->size_bytes);
    if (!piece->full) break;
  }
}

bool Fill::closed() const {
  std::lock_guard lock(mutex_);
  return failed_ || (!storing_ && gone_);
}

bool Fill::storing() const {
  std::lock_guard lock(mutex_);
  return storing_;
}

void Fill::stop_storing() {
  std::lock_guard lock(mutex_);
  storing_ = false;
}

// Hands the last piece to a worker. A few may wait for it: a medium that is slow for a moment does not hold up the
// line.
net::Task<> Fill::start_writing() {
  co_await writing_done(limits::kFillPiecesUnwritten - 1);
  {
    std::lock_guard lock(mutex_);
    if (!storing_) co_return;
    ++to_write_;
    if (writing_) co_return;
    writing_ = true;
  }
  std::function<void()> work = [self = shared_from_this()] { self->write_pieces(); };
  deps_.workers.start(std::move(work));
}

// Returns when at most `left` pieces are unwritten.
net::Task<> Fill::writing_done(size_t left) {
  for (;;) {
    const uint64_t version = written_.version();
    {
      std::lock_guard lock(mutex_);
      if (left == 0 ? !writing_ : to_write_ <= left) co_return;
    }
    co_await written_.wait(version);
  }
}

// On a worker: the pieces that are due, one after the other.
void Fill::write_pieces() {
  for (bool more = true; more;) {
    uint64_t offset = 0;
    std::string_view bytes;
    std::shared_ptr<char[]> buffer;
    {
      std::lock_guard lock(mutex_);
      // Others may be filling already: those to write are full.
      const auto piece = std::find_if(pieces_.begin(), pieces_.end(),
                                      [](const Piece& candidate) { return candidate.full && !candidate.stored; });
      NEZHA_CHECK(piece != pieces_.end(), "a piece that is to be written is kept");
      offset = piece->offset;
      buffer = piece->buffer;
      bytes = {buffer.get(), piece->size_bytes};
    }
    const bool written = write_piece(offset, bytes);
    {
      std::lock_guard lock(mutex_);
      to_write_ = written ? to_write_ - 1 : 0;
      storing_ &= written;
      more = writing_ = to_write_ > 0;
    }
    written_.notify_all();
    consumed_.notify_all();  // a piece being written holds back those behind it
  }
}

bool Fill::write_piece(uint64_t offset, std::string_view bytes) {
  if (by_pieces_ && !open(head_)) return false;
  const uint64_t generation = by_pieces_ ? generation_ : ticket_->generation;
  const auto appended = deps_.store.append_extent(*ticket_, generation, queue_, offset, bytes);
  if (!appended) return false;
  const Place place = appended.value().place;
  if (by_pieces_ && !deps_.store.add_extents(*ticket_, generation, {{offset, place}})) return false;
  deps_.stored_bytes.add(static_cast<double>(bytes.size()));
  std::lock_guard lock(mutex_);
  const auto piece = piece_at(offset);
  piece->place = place;
  piece->stored = appended.value().bytes;
  piece->buffer.reset();
  return true;
}

// On a worker, once: makes the head visible. False when the store does not want it any more.
bool Fill::open(StoredHeadPtr head) {
  if (generation_ != 0) return true;
  const auto opened = deps_.store.open_generation(*ticket_, key_, head, queue_, by_pieces_);
  if (opened) generation_ = opened.value()->generation;
  return static_cast<bool>(opened);
}

// What was not published piece by piece.
net::Task<> Fill::publish_whole() {
  if (generation_ != 0) co_return;
  const StoredHeadPtr head = head_->total_bytes || end_ ? head_ : with_total(*head_, available_);
  std::vector<Extent> extents;
  for (const Piece& piece : pieces_) {
    if (piece.size_bytes > 0) extents.push_back({piece.offset, piece.place});
  }
  std::function<void()> work = [&] {
    if (open(head)) (void)deps_.store.add_extents(*ticket_, generation_, extents);
  };
  co_await deps_.workers.run(std::move(work));
}

// A relay holds a few pieces ahead of its slowest reader. False: nobody reads any more.
net::Task<bool> Fill::may_go_on(const Clock& clock, uint64_t position) {
  for (;;) {
    const uint64_t version = consumed_.version();
    {
      std::lock_guard lock(mutex_);
      if (storing_) co_return true;
      release_passed();
      if (readers_.empty()) {
        gone_ = true;  // at once: nobody may join what is about to end
        co_return false;
      }
      // Pieces that are safe in the tier cost no memory; they are not what fills the window. Of several connections
      // only the one that readers wait for goes on.
      const auto in_memory = std::count_if(pieces_.begin(), pieces_.end(), [&](const Piece& piece) {
        return piece.buffer != nullptr && piece.offset < available_;
      });
      if (position <= available_ && static_cast<size_t>(in_memory) < limits::kFillWindowPieces) {
        patience_until_.reset();
        co_return true;
      }
      if (!patience_until_) patience_until_ = clock.now() + limits::kSlowReaderPatience;
    }
    co_await consumed_.wait(version);
  }
}

bool Fill::cut_slow_readers(SteadyTime now) {
  {
    std::lock_guard lock(mutex_);
    if (failed_ || complete_) return false;
    if (storing_ || !patience_until_ || now < *patience_until_) return true;
    const uint64_t first_end = pieces_.front().offset + pieces_.front().size_bytes;
    const auto slow = std::partition(readers_.begin(), readers_.end(),
                                     [&](const Reader* reader) { return reader->position() >= first_end; });
    const bool others_wait =
        std::any_of(readers_.begin(), slow, [&](const Reader* reader) { return reader->position() == available_; });
    if (!others_wait || !std::all_of(slow, readers_.end(), [](const Reader* reader) { return reader->may_be_cut(); }))
      return true;
    std::for_each(slow, readers_.end(), [](Reader* reader) { reader->cut(); });
    readers_.erase(slow, readers_.end());
    patience_until_.reset();
  }
  consumed_.notify_all();
  return true;
}

void Fill::release_passed() {
  // Until the end, newcomers may start from the beginning; afterwards they find it in the store.
  if ((storing_ && !complete_) || writing_) return;
  // Those of a relay, too, while its window has room for them.
  if (!storing_ && !gone_ && pieces_.size() < limits::kFillWindowPieces) return;
  uint64_t slowest = available_;
  for (const Reader* reader : readers_) slowest = std::min(slowest, reader->position());
  while (!pieces_.empty() && pieces_.front().size_bytes > 0 && (pieces_.front().full || !in_lanes_) &&
         pieces_.front().offset + pieces_.front().size_bytes <= slowest && pieces_.size() > 1) {
    pieces_.pop_front();
    gone_ = true;
  }
}

// Those it has learn of the failure when they have read what came before it.
void Fill::refuse_readers(const Error& error) {
  std::lock_guard lock(mutex_);
  failed_ = error;
}

void Fill::finish(const Result<void>& result) {
  {
    std::lock_guard lock(mutex_);
    complete_ = result.has_value();
  }
  ticket_->ended = true;
  // Readers may hold on to the fill for long: what it holds of others' budgets goes back now.
  reservation_.reset();
  if (buffer_bytes_ > 0) deps_.store.give_fill_memory(std::exchange(buffer_bytes_, 0));
  if (!result) deps_.incomplete.add();
  progress_.notify_all();
}

}  // namespace nezha::cache
