// Fill: one response body on its way from the upstream into the store, read meanwhile by any number of clients.
// It belongs to nobody's connection: a client that leaves does not end it. Readers stream from it at their own pace.
// Whole pieces of a response with a strong validator are published as they come: what breaks off later leaves valid
// extents. Any other body is published when its framing has proved it complete, or not at all.
// When it is not worth storing, or the store cannot take it, it is a relay: readers may join until its window of pieces
// has moved on, and the upstream is read no faster than the slowest of them, but for those that can be cut off.
// A body of which whole pieces are published may come over several connections at once (lanes.cc): pieces arrive in any
// order then, and are sent on in theirs.
// Threads: run() on the loop that opened the exchange; readers on any loop.
#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/deliver/body_source.h"
#include "cache/fill/piece_buffers.h"
#include "cache/fill/range_plan.h"
#include "cache/fill/range_source.h"
#include "cache/fill/upstream.h"
#include "cache/store/store.h"

namespace nezha::cache {

struct FillDeps {
  Store& store;
  net::Workers& workers;
  PieceBuffers& buffers;
  obs::Counter& stored_bytes;
  obs::Counter& incomplete;
  obs::Counter& not_admitted;
  obs::Counter& parts;
};

class Fill : public std::enable_shared_from_this<Fill> {
 public:
  // `begin`, `end`: the bytes this body is of the representation; the end is absent while unknown (chunked). Decides
  // whether it is worth storing and there is room.
  Fill(FillDeps deps, CacheKey key, std::shared_ptr<FillTicket> ticket, StoredHeadPtr head, uint64_t begin,
       std::optional<uint64_t> end);
  ~Fill();

  // Reads the body to its end. The connection goes back to the pool if it can be used again. `more`: for reading parts
  // of it over other connections meanwhile; may be null.
  // `gate`: of what may go on for a while behind that.
  using Ranges = std::shared_ptr<RangeSource>;
  net::Task<> run(UpstreamPool& pool, net::Gate& gate, Exchange exchange, Ranges more);

  // Null when the fill can take no more readers (a relay that has let go of its first bytes, or ends). Starts at
  // `begin` of the wanted range. `may_be_cut`: it may fail with kRetryHere, and only then, to be continued from
  // elsewhere.
  std::unique_ptr<BodySource> reader(uint64_t position, bool may_be_cut);
  // Of a relay that has waited too long for some readers while others had taken all there is: cuts off those it waits
  // for, if all of them may be. False once it has ended.
  bool cut_slow_readers(SteadyTime now);

  // Why it is not going to be stored, for Cache-Status; null when it is, unless the medium fails.
  const char* refusal() const { return refusal_; }
  // It takes no more readers, nor will it be in the store: who comes now begins another.
  bool closed() const;

  const StoredHeadPtr& head() const { return head_; }
  // Its path was invalidated since the request was sent: it will not be published, and holds old bytes.
  bool superseded() const { return ticket_->doomed; }
  uint64_t begin() const { return begin_; }
  std::optional<uint64_t> end() const { return end_; }  // nothing while unknown

 private:
  class Reader;
  struct Piece {
    uint64_t offset = 0;
    size_t size_bytes = 0;  // filled so far
    bool full = false;      // no more will come into it
    std::shared_ptr<char[]> buffer;
    std::optional<PinnedBytes> stored;
    Place place;
  };

  const char* decide_to_store();
  // lanes.cc: from where the bytes come.
  net::Task<Result<void>> read_all(UpstreamPool& pool, net::Gate& gate, Exchange& exchange, Ranges more);
  net::Task<Result<void>> read_first(UpstreamPool& pool, Connection& connection, http::ByteRange part);
  net::Task<Result<void>> read_part(UpstreamPool& pool, Connection& connection, http::ByteRange& left,
                                    std::string_view already);
  net::Task<Result<void>> read_end(UpstreamPool& pool, Connection& connection);
  static net::Task<> run_spawned_lane(std::shared_ptr<Fill> fill, UpstreamPool& pool, Ranges more);
  net::Task<> run_lane(UpstreamPool& pool, RangeSource& more);
  net::Task<Result<void>> fetch_part(UpstreamPool& pool, RangeSource& more, http::ByteRange& left);
  net::Task<Result<Exchange>> open_part(UpstreamPool& pool, RangeSource& more, http::ByteRange part, char& first);
  size_t lanes_wanted();
  std::optional<http::ByteRange> take_part();
  std::optional<http::ByteRange> take_part_at(uint64_t position);
  void give_back(http::ByteRange left);
  void note_lane_failure(http::ByteRange left, const Error& error);
  net::Task<> lanes_done();
  // The bytes themselves.
  net::Task<Result<void>> fill_piece(UpstreamPool& pool, Connection& connection, http::ByteRange& left,
                                     size_t piece_bytes, std::string_view already);
  void finish_piece(uint64_t offset);
  std::deque<Piece>::iterator piece_at(uint64_t offset);  // REQUIRES: mutex_ held, and there is one
  void advance();                                         // REQUIRES: mutex_ held
  net::Task<bool> may_go_on(const Clock& clock, uint64_t position);
  bool reserve_ahead();
  void stop_storing();
  bool storing() const;
  net::Task<> start_writing();
  void write_pieces();
  net::Task<> writing_done(size_t left);
  bool write_piece(uint64_t offset, std::string_view bytes);
  bool open(StoredHeadPtr head);
  net::Task<> publish_whole();
  void release_passed();  // REQUIRES: mutex_ held
  void refuse_readers(const Error& error);
  void finish(const Result<void>& result);

  FillDeps deps_;
  const CacheKey key_;
  const std::shared_ptr<FillTicket> ticket_;
  StoredHeadPtr head_;
  const uint64_t begin_;
  const std::optional<uint64_t> end_;
  bool by_pieces_ = false;  // published as they come

  std::unique_ptr<Tier::Reservation> reservation_;
  uint64_t reserved_bytes_ = 0;
  uint64_t buffer_bytes_ = 0;  // taken from the store's budget
  Queue queue_ = Queue::kProbation;
  uint64_t generation_ = 0;  // once opened
  const char* refusal_ = nullptr;

  // The loop's own, that run() is on.
  struct Opening {  // a part that a lane has asked for, and got nothing of yet
    http::ByteRange part;
    bool taken_over = false;
  };
  std::list<Opening> openings_;
  net::Notification lanes_changed_;
  size_t lanes_running_ = 0;
  bool lanes_proven_ = false;   // the source gave one of them a part
  bool lanes_refused_ = false;  // it gives them none
  std::optional<Error> lane_failed_;

  mutable std::mutex mutex_;
  RangePlan plan_{{}, 1};       // what is not begun
  bool in_lanes_ = false;       // pieces may arrive in any order
  net::Notification progress_;  // more bytes, or the end
  net::Notification consumed_;  // a reader moved on or left
  net::Notification written_;   // a worker is done
  std::deque<Piece> pieces_;    // by offset, behind those that all readers of a relay have passed
  bool gone_ = false;           // there were such, or nobody is to have them any more
  uint64_t available_;          // up to here without a gap
  bool storing_ = true;
  size_t to_write_ = 0;                       // full pieces that a worker has not stored yet, the last ones
  bool writing_ = false;                      // a worker is at it
  std::optional<SteadyTime> patience_until_;  // while a relay waits for its slowest readers
  bool complete_ = false;
  std::optional<Error> failed_;
  std::vector<Reader*> readers_;
};

}  // namespace nezha::cache
