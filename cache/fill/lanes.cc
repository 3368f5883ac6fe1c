// From where the bytes of a fill come: one connection that has the whole body, and lanes beside it, each of which
// fetches one part after the other over a connection of its own. Who has nothing left to take ends. Where the first
// connection comes to a part of which a lane has not got a byte yet, it takes that over: a source that serves few
// connections, or refuses lanes, holds up nobody. Where a lane is at it, the first connection goes on as a lane.
#include <algorithm>
#include <limits>
#include <utility>

#include "cache/fill/fill.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr uint64_t kPartBytes = 8 * limits::kPieceBytes;
constexpr size_t kConnectionsMax = 8;  // of one fill
// Of a lane, in a row. A source that is busy may be so for some seconds.
constexpr int kAttemptsRefused = 3;
constexpr int kAttemptsBusy = 8;
constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kPauseMax{5000};

}  // namespace

net::Task<Result<void>> Fill::read_all(UpstreamPool& pool, net::Gate& gate, Exchange& exchange, Ranges more) {
  constexpr uint64_t kNoEnd = std::numeric_limits<uint64_t>::max();
  lanes_running_ = more ? lanes_wanted() : 0;
  {
    std::lock_guard lock(mutex_);
    in_lanes_ = lanes_running_ > 0;
    plan_ = RangePlan({begin_, end_.value_or(kNoEnd)}, in_lanes_ ? kPartBytes : kNoEnd);
  }
  const auto first = take_part_at(begin_);
  for (size_t i = 0; i < lanes_running_; ++i) gate.spawn(run_spawned_lane(shared_from_this(), pool, more));
  Result<void> result = ok();
  if (first)
    result = co_await read_first(pool, *exchange.connection, *first);
  else
    result = co_await read_end(pool, *exchange.connection);
  if (in_lanes_) {
    if (!exchange.connection->body_done()) exchange.connection.reset();
    co_await run_lane(pool, *more);
    co_await lanes_done();
    std::lock_guard lock(mutex_);
    lanes_refused_ = true;  // whatever a lane still waits for
    if (available_ == *end_) co_return ok();
    if (result && lane_failed_) result = *lane_failed_;
    if (result && gone_) result = Error{Remedy::kGiveUp, "all readers left"};
  }
  if (result && end_ && available_ != *end_)
    co_return fail(Remedy::kGiveUp, "the body is not as long as its head said");
  co_return result;
}

// Each lane holds a piece in memory.
size_t Fill::lanes_wanted() {
  if (!storing()) return 0;
  const uint64_t parts = (*end_ - begin_) / kPartBytes;
  size_t wanted = std::min<uint64_t>(kConnectionsMax, std::max<uint64_t>(parts, 1)) - 1;
  while (wanted > 0 && !deps_.store.take_fill_memory(wanted * limits::kPieceBytes)) wanted /= 2;
  buffer_bytes_ += wanted * limits::kPieceBytes;
  return wanted;
}

net::Task<Result<void>> Fill::read_first(UpstreamPool& pool, Connection& connection, http::ByteRange part) {
  for (;;) {
    http::ByteRange left = part;
    const Result<void> read = co_await read_part(pool, connection, left, {});
    if (!read) {
      give_back(left);
      co_return read;
    }
    if (connection.body_done()) co_return ok();
    const auto next = take_part_at(part.end);
    if (!next && end_ == part.end) co_return co_await read_end(pool, connection);
    if (!next) co_return ok();
    part = *next;
  }
}

// Reads as much of it as comes; `left` is what is missing then. The end of the body may come first.
// `already`: of it, read from the connection before.
net::Task<Result<void>> Fill::read_part(UpstreamPool& pool, Connection& connection, http::ByteRange& left,
                                        std::string_view already) {
  while (left.begin < left.end && (!connection.body_done() || !already.empty())) {
    if (storing() && !reserve_ahead()) stop_storing();
    const bool wanted = co_await may_go_on(pool.clock(), left.begin);
    if (!wanted) co_return fail(Remedy::kGiveUp, "all readers left");
    const uint64_t piece_max = storing() ? deps_.store.fill_tier().piece_bytes() : limits::kRelayBytes;
    const auto piece_bytes = static_cast<size_t>(std::min(left.size_bytes(), piece_max));
    const uint64_t offset = left.begin;
    const Result<void> filled = co_await fill_piece(pool, connection, left, piece_bytes, already);
    already = {};
    // Others will go on behind what has come of it.
    if (!filled && in_lanes_) finish_piece(offset);
    const bool whole = filled || in_lanes_;
    if (whole && left.begin > offset && storing()) co_await start_writing();
    if (!filled) co_return filled;
  }
  co_return ok();
}

// Behind the last byte that the head promised there must be nothing.
net::Task<Result<void>> Fill::read_end(UpstreamPool& pool, Connection& connection) {
  if (connection.body_done()) co_return ok();
  const net::ScopedDeadline deadline(connection.stream(), pool.clock().now() + limits::kBodyStallTimeout);
  char byte = 0;
  NEZHA_CO_TRY(const size_t got, co_await connection.read_body({&byte, 1}));
  if (got > 0) co_return fail(Remedy::kGiveUp, "the body is longer than its head said");
  co_return ok();
}

// It may outlast the fill, where it waits for a part that another connection has taken over.
net::Task<> Fill::run_spawned_lane(std::shared_ptr<Fill> fill, UpstreamPool& pool, Ranges more) {
  co_await fill->run_lane(pool, *more);
  --fill->lanes_running_;
  fill->lanes_changed_.notify_all();
}

net::Task<> Fill::run_lane(UpstreamPool& pool, RangeSource& more) {
  int failures = 0;
  while (auto part = take_part()) {
    const Result<void> fetched = co_await fetch_part(pool, more, *part);
    if (fetched) {
      failures = 0;
      continue;
    }
    note_lane_failure(*part, fetched.error());
    const bool refused = fetched.error().remedy == Remedy::kGiveUp;
    if (++failures >= (refused ? kAttemptsRefused : kAttemptsBusy)) break;
    co_await pool.loop().sleep(std::min(kFirstPause * (1 << failures), kPauseMax));
  }
}

net::Task<Result<void>> Fill::fetch_part(UpstreamPool& pool, RangeSource& more, http::ByteRange& left) {
  const auto opening = openings_.insert(openings_.end(), {left, false});
  char first = 0;
  auto opened = co_await open_part(pool, more, left, first);
  const bool taken_over = opening->taken_over;
  openings_.erase(opening);
  if (taken_over) {
    left.begin = left.end;
    co_return ok();
  }
  if (!opened) co_return std::move(opened).as_failure();
  Exchange& exchange = opened.value();
  lanes_proven_ = true;
  NEZHA_CO_DO(co_await read_part(pool, *exchange.connection, left, {&first, 1}));
  if (left.size_bytes() > 0) co_return fail(Remedy::kRetryLater, "a part is not as long as its head said");
  deps_.parts.add();
  if (exchange.head.keep_alive && exchange.connection->body_done())
    pool.release(exchange.origin, std::move(exchange.connection));
  co_return ok();
}

// With its first byte: a source may promise more than it can keep.
net::Task<Result<Exchange>> Fill::open_part(UpstreamPool& pool, RangeSource& more, http::ByteRange part, char& first) {
  NEZHA_CO_TRY(Exchange exchange, co_await more.open(part));
  const net::ScopedDeadline deadline(exchange.connection->stream(), pool.clock().now() + limits::kBodyStallTimeout);
  NEZHA_CO_TRY(const size_t got, co_await exchange.connection->read_body({&first, 1}));
  if (got == 0) co_return fail(Remedy::kRetryLater, "a part is not as long as its head said");
  co_return std::move(exchange);
}

// Or all bytes are here.
net::Task<> Fill::lanes_done() {
  for (;;) {
    const uint64_t version = lanes_changed_.version();
    {
      std::lock_guard lock(mutex_);
      if (lanes_running_ == 0 || available_ == *end_) co_return;
    }
    co_await lanes_changed_.wait(version);
  }
}

std::optional<http::ByteRange> Fill::take_part() {
  std::lock_guard lock(mutex_);
  const bool unread = !storing_ && readers_.empty();
  if (unread) gone_ = true;  // nobody may join what is about to end
  return lanes_refused_ || unread ? std::nullopt : plan_.take();
}

std::optional<http::ByteRange> Fill::take_part_at(uint64_t position) {
  const auto opening = std::find_if(openings_.begin(), openings_.end(), [&](const Opening& candidate) {
    return candidate.part.begin == position && !candidate.taken_over;
  });
  if (opening != openings_.end()) {
    opening->taken_over = true;
    return opening->part;
  }
  std::lock_guard lock(mutex_);
  return plan_.take_at(position);
}

void Fill::give_back(http::ByteRange left) {
  {
    std::lock_guard lock(mutex_);
    plan_.give_back(left);
  }
  lanes_changed_.notify_all();
}

// A lane that is refused before any other got a part says that none will; later the source may just be busy.
void Fill::note_lane_failure(http::ByteRange left, const Error& error) {
  lane_failed_ = Error{Remedy::kRetryHere, error.message};
  if (error.remedy == Remedy::kGiveUp && !lanes_proven_) lanes_refused_ = true;
  give_back(left);
}

}  // namespace nezha::cache
