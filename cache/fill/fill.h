// Fill: one response body on its way from the upstream into the store, read meanwhile by any number of clients.
// It belongs to nobody's connection: a client that leaves does not end it. Readers stream from it at their own pace.
// Whole pieces of a response with a strong validator are published as they come: what breaks off later leaves valid
// extents. Any other body is published when its framing has proved it complete, or not at all.
// When it is not worth storing, or the store cannot take it, it is a relay: readers may join until its window of pieces
// has moved on, and the upstream is read no faster than the slowest of them, but for those that can be cut off.
// Threads: run() on the loop that opened the exchange; readers on any loop.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/deliver/body_source.h"
#include "cache/fill/piece_buffers.h"
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
};

class Fill : public std::enable_shared_from_this<Fill> {
 public:
  // `begin`, `end`: the bytes this body is of the representation; the end is absent while unknown (chunked). Decides
  // whether it is worth storing and there is room.
  Fill(FillDeps deps, CacheKey key, std::shared_ptr<FillTicket> ticket, StoredHeadPtr head, uint64_t begin,
       std::optional<uint64_t> end);
  ~Fill();

  // Reads the body to its end. The connection goes back to the pool if it can be used again.
  net::Task<> run(UpstreamPool& pool, Exchange exchange);

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
  net::Task<Result<void>> read_all(UpstreamPool& pool, Connection& connection);
  net::Task<Result<size_t>> fill_piece(UpstreamPool& pool, Connection& connection, size_t piece_bytes);
  net::Task<bool> may_go_on(const Clock& clock);
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

  mutable std::mutex mutex_;
  net::Notification progress_;  // more bytes, or the end
  net::Notification consumed_;  // a reader moved on or left
  net::Notification written_;   // a worker is done
  std::deque<Piece> pieces_;    // behind those that all readers of a relay have passed
  bool gone_ = false;           // there were such, or nobody is to have them any more
  uint64_t available_;
  bool storing_ = true;
  size_t to_write_ = 0;                       // full pieces that a worker has not stored yet, the last ones
  bool writing_ = false;                      // a worker is at it
  std::optional<SteadyTime> patience_until_;  // while a relay waits for its slowest readers
  bool complete_ = false;
  std::optional<Error> failed_;
  std::vector<Reader*> readers_;
};

}  // namespace nezha::cache
