// From where the bytes of a fill come: one connection that has the whole body, and lanes beside it, each of which
// fetches one part after the other over a connection of its own. Who has nothing left to take ends. The first
// connection goes on as a lane where it meets a part that a lane has begun, once the source has shown that it gives
// parts.
#include <algorithm>
#include <limits>
#include <utility>

#include "cache/fill/fill.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr uint64_t kPartBytes = 8 * limits::kPieceBytes;
constexpr size_t kConnectionsMax = 8;  // of one fill
constexpr int kAttempts = 3;           // of a lane, in a row
constexpr std::chrono::milliseconds kFirstPause{100};

}  // namespace

net::Task<Result<void>> Fill::read_all(UpstreamPool& pool, Exchange& exchange, RangeSource* more) {
  constexpr uint64_t kNoEnd = std::numeric_limits<uint64_t>::max();
  lanes_running_ = more ? lanes_wanted() : 0;
  {
    std::lock_guard lock(mutex_);
    in_lanes_ = lanes_running_ > 0;
    plan_ = RangePlan({begin_, end_.value_or(kNoEnd)}, in_lanes_ ? kPartBytes : kNoEnd);
  }
  const auto first = take_part_at(begin_);
  net::Gate lanes(pool.loop().executor());
  for (size_t i = 0; i < lanes_running_; ++i) lanes.spawn(run_spawned_lane(pool, *more));
  Result<void> result = ok();
  if (first)
    result = co_await read_first(pool, *exchange.connection, *first);
  else
    result = co_await read_end(pool, *exchange.connection);
  if (in_lanes_) {
    if (!exchange.connection->body_done()) exchange.connection.reset();
    co_await run_lane(pool, *more);
    co_await lanes_done(lanes);
    std::lock_guard lock(mutex_);
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
    const Result<void> read = co_await read_part(pool, connection, left);
    if (!read) {
      give_back(left);
      co_return read;
    }
    if (connection.body_done()) co_return ok();
    for (;;) {
      const uint64_t version = lanes_changed_.version();
      if (const auto next = take_part_at(part.end)) {
        part = *next;
        break;
      }
      if (end_ == part.end) co_return co_await read_end(pool, connection);
      if (lanes_proven_) co_return ok();
      co_await lanes_changed_.wait(version);
    }
  }
}

// Reads as much of it as comes; `left` is what is missing then. The end of the body may come first.
net::Task<Result<void>> Fill::read_part(UpstreamPool& pool, Connection& connection, http::ByteRange& left) {
  while (left.begin < left.end && !connection.body_done()) {
    if (storing() && !reserve_ahead()) stop_storing();
    const bool wanted = co_await may_go_on(pool.clock(), left.begin);
    if (!wanted) co_return fail(Remedy::kGiveUp, "all readers left");
    const uint64_t piece_max = storing() ? deps_.store.fill_tier().piece_bytes() : limits::kRelayBytes;
    const auto piece_bytes = static_cast<size_t>(std::min(left.size_bytes(), piece_max));
    const uint64_t offset = left.begin;
    const Result<void> filled = co_await fill_piece(pool, connection, left, piece_bytes);
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

net::Task<> Fill::run_spawned_lane(UpstreamPool& pool, RangeSource& more) {
  co_await run_lane(pool, more);
  --lanes_running_;
  lanes_changed_.notify_all();
}

net::Task<> Fill::run_lane(UpstreamPool& pool, RangeSource& more) {
  for (int failures = 0; failures < kAttempts;) {
    auto part = take_part();
    if (!part) break;
    const Result<void> fetched = co_await fetch_part(pool, more, *part);
    if (fetched) {
      failures = 0;
      continue;
    }
    note_lane_failure(*part, fetched.error());
    if (++failures < kAttempts) co_await pool.loop().sleep(kFirstPause * (1 << failures));
  }
}

net::Task<Result<void>> Fill::fetch_part(UpstreamPool& pool, RangeSource& more, http::ByteRange& left) {
  NEZHA_CO_TRY(Exchange exchange, co_await more.open(left));
  lanes_proven_ = true;
  lanes_changed_.notify_all();
  NEZHA_CO_DO(co_await read_part(pool, *exchange.connection, left));
  if (left.size_bytes() > 0) co_return fail(Remedy::kRetryLater, "a part is not as long as its head said");
  deps_.parts.add();
  if (exchange.head.keep_alive && exchange.connection->body_done())
    pool.release(exchange.origin, std::move(exchange.connection));
  co_return ok();
}

net::Task<> Fill::lanes_done(const net::Gate& lanes) {
  while (lanes_running_ > 0) co_await lanes_changed_.wait(lanes_changed_.version());
  while (lanes.size() > 0) co_await net::yield();  // the last thing that a lane does is to say so; then it leaves
}

std::optional<http::ByteRange> Fill::take_part() {
  std::lock_guard lock(mutex_);
  const bool unread = !storing_ && readers_.empty();
  if (unread) gone_ = true;  // nobody may join what is about to end
  return lanes_refused_ || unread ? std::nullopt : plan_.take();
}

std::optional<http::ByteRange> Fill::take_part_at(uint64_t position) {
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
