#include "cache/fill/fill.h"

#include <algorithm>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"

namespace nezha::cache {

// One client's place in the fill.
class Fill::Reader final : public BodySource {
 public:
  Reader(std::shared_ptr<Fill> fill, uint64_t position) : fill_(std::move(fill)), position_(position) {}
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
    if (position_ < fill.available_) {
      const size_t index = static_cast<size_t>((position_ - fill.begin_) / limits::kPieceBytes);
      NEZHA_CHECK(index < fill.pieces_.size(), "a reader is inside what is available");
      const Piece& piece = fill.pieces_[index];
      const size_t skip = static_cast<size_t>(position_ - piece.offset);
      PinnedBytes out;
      if (piece.stored)
        out = *piece.stored;
      else
        out = {{piece.buffer.get(), piece.size_bytes}, piece.buffer};
      NEZHA_CHECK(out.pin != nullptr, "a piece ahead of a reader is kept");
      out.bytes = out.bytes.substr(skip);
      position_ += out.bytes.size();
      const bool relay = !fill.storing_;
      fill.release_passed();
      lock.unlock();
      if (relay) fill.consumed_.notify_all();
      return out;
    }
    if (fill.failed_) return Result<PinnedBytes>(*fill.failed_);
    if (fill.complete_) return Result<PinnedBytes>(PinnedBytes{});
    return std::nullopt;
  }

  net::Task<> wait() override { co_await fill_->progress_.wait(version_); }
  uint64_t position() const { return position_; }

 private:
  const std::shared_ptr<Fill> fill_;
  uint64_t position_;
  uint64_t version_ = 0;
};

Fill::Fill(FillDeps deps, CacheKey key, std::shared_ptr<FillTicket> ticket, StoredHeadPtr head, uint64_t begin,
           std::optional<uint64_t> end)
    : deps_(deps),
      key_(std::move(key)),
      ticket_(std::move(ticket)),
      head_(std::move(head)),
      begin_(begin),
      end_(end),
      available_(begin) {}

std::unique_ptr<BodySource> Fill::reader(uint64_t position) {
  std::lock_guard lock(mutex_);
  if (!storing_ || failed_ || dropped_pieces_ > 0) return nullptr;
  auto reader = std::make_unique<Reader>(shared_from_this(), position);
  readers_.push_back(reader.get());
  return reader;
}

net::Task<> Fill::run(UpstreamPool& pool, Exchange exchange) {
  const auto self = shared_from_this();
  Result<void> result = co_await read_all(pool, *exchange.connection);
  if (result && exchange.head.keep_alive) pool.release(exchange.origin, std::move(exchange.connection));
  exchange.connection.reset();
  if (result && storing_) publish();
  finish(std::move(result));
}

net::Task<Result<void>> Fill::read_all(UpstreamPool& pool, Connection& connection) {
  std::unique_ptr<Tier::Reservation> reservation;
  uint64_t reserved_bytes = 0;
  const auto reserve = [&](uint64_t bytes) {
    auto got = deps_.tier.reserve(bytes);
    if (got) reservation = std::move(got.value()), reserved_bytes = bytes;
    return static_cast<bool>(got);
  };
  if (end_ && !reserve(*end_ - begin_)) stop_storing();
  for (;;) {
    // A body of unknown length promises itself twice what it has, step by step.
    if (!end_ && storing_ && available_ - begin_ + limits::kPieceBytes > reserved_bytes) {
      if (!reserve(std::max<uint64_t>(reserved_bytes * 2, limits::kPieceBytes))) stop_storing();
    }
    if (!storing_) {
      const bool wanted = co_await wait_for_window();
      if (!wanted) co_return fail(Remedy::kGiveUp, "all readers left");
    }
    const uint64_t left = end_ ? *end_ - available_ : limits::kPieceBytes;
    const size_t piece_bytes = static_cast<size_t>(std::min<uint64_t>(left, limits::kPieceBytes));
    NEZHA_CO_TRY(const size_t got, co_await fill_piece(pool, connection, std::max<size_t>(piece_bytes, 1)));
    if (got > 0 || available_ == begin_) co_await store_last_piece();
    if (connection.body_done()) break;
  }
  if (end_ && available_ != *end_) co_return fail(Remedy::kGiveUp, "the body is not as long as its head said");
  co_return ok();
}

// Reads until the piece is full or the body ends. The bytes are visible to readers as they arrive.
net::Task<Result<size_t>> Fill::fill_piece(UpstreamPool& pool, Connection& connection, size_t piece_bytes) {
  const std::shared_ptr<char[]> buffer(new char[piece_bytes]);
  {
    std::lock_guard lock(mutex_);
    pieces_.push_back({available_, 0, buffer, std::nullopt, {}});
  }
  size_t filled = 0;
  while (filled < piece_bytes && !connection.body_done()) {
    const net::ScopedDeadline deadline(connection.stream(), pool.clock().now() + limits::kBodyStallTimeout);
    NEZHA_CO_TRY(const size_t got, co_await connection.read_body({buffer.get() + filled, piece_bytes - filled}));
    if (got == 0) break;
    filled += got;
    {
      std::lock_guard lock(mutex_);
      if (end_ && available_ + got > *end_) co_return fail(Remedy::kGiveUp, "the body is longer than its head said");
      pieces_.back().size_bytes = filled;
      available_ += got;
    }
    progress_.notify_all();
  }
  co_return filled;
}

void Fill::stop_storing() {
  std::lock_guard lock(mutex_);
  storing_ = false;
}

net::Task<> Fill::store_last_piece() {
  if (!storing_) co_return;
  std::string_view bytes;
  {
    std::lock_guard lock(mutex_);
    bytes = {pieces_.back().buffer.get(), pieces_.back().size_bytes};
  }
  std::optional<Result<Place>> place;
  const uint64_t owner = Index::owner_hash(key_.path);
  std::function<void()> work = [&] { place.emplace(deps_.tier.write(owner, bytes)); };
  co_await deps_.workers.run(std::move(work));
  std::lock_guard lock(mutex_);
  auto pinned = *place ? deps_.tier.pin(place->value()) : std::nullopt;
  if (!pinned) {
    storing_ = false;
    co_return;
  }
  Piece& piece = pieces_.back();
  piece.place = place->value();
  piece.stored = std::move(pinned);
  piece.buffer.reset();
  deps_.stored_bytes.add(static_cast<double>(bytes.size()));
}

// A relay holds a few pieces ahead of its slowest reader. False: nobody reads any more.
net::Task<bool> Fill::wait_for_window() {
  for (;;) {
    const uint64_t version = consumed_.version();
    {
      std::lock_guard lock(mutex_);
      release_passed();
      if (readers_.empty()) co_return false;
      if (pieces_.size() - dropped_pieces_ < limits::kFillWindowPieces) co_return true;
      // Pieces that are safe in the tier cost no memory; they are not what fills the window.
      const auto in_memory =
          std::count_if(pieces_.begin(), pieces_.end(), [](const Piece& piece) { return piece.buffer != nullptr; });
      if (static_cast<size_t>(in_memory) < limits::kFillWindowPieces) co_return true;
    }
    co_await consumed_.wait(version);
  }
}

void Fill::release_passed() {
  // Until the end, newcomers may start from the beginning; afterwards they find it in the index.
  if (storing_ && !complete_) return;
  uint64_t slowest = available_;
  for (const Reader* reader : readers_) slowest = std::min(slowest, reader->position());
  while (dropped_pieces_ < pieces_.size() && pieces_[dropped_pieces_].offset + limits::kPieceBytes <= slowest) {
    pieces_[dropped_pieces_].buffer.reset();
    pieces_[dropped_pieces_].stored.reset();
    ++dropped_pieces_;
  }
}

void Fill::publish() {
  StoredHeadPtr head = head_;
  if (!head->total_bytes) head = with_total(*head, available_);
  std::vector<Extent> extents;
  extents.reserve(pieces_.size());
  for (const Piece& piece : pieces_) {
    if (piece.size_bytes > 0 || pieces_.size() == 1) extents.push_back({piece.offset, piece.place});
  }
  while (deps_.index.head_bytes() > deps_.index_bytes_max && deps_.tier.reclaim_oldest()) {
  }
  (void)deps_.index.publish(*ticket_, key_, head, std::move(extents));
}

void Fill::finish(Result<void> result) {
  {
    std::lock_guard lock(mutex_);
    if (result)
      complete_ = true;
    else
      failed_ = result.error();
  }
  if (!result) deps_.incomplete.add();
  progress_.notify_all();
}

}  // namespace nezha::cache
