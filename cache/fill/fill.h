// Fill: one response body on its way from the upstream into a tier, read meanwhile by any number of clients.
// It belongs to nobody's connection: a client that leaves does not end it. Readers stream from it at their own pace.
// Nothing is published unless the body is complete as its framing proves.
// When the tier cannot take it (full, broken), it goes on as a relay for the readers it has: the upstream is then read
// no faster than the slowest of them.
// Threads: run() on the loop that opened the exchange; readers on any loop.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cache/deliver/body_source.h"
#include "cache/fill/upstream.h"
#include "cache/index/index.h"
#include "cache/tier/tier.h"

namespace nezha::cache {

struct FillDeps {
  Tier& tier;
  Index& index;
  net::Workers& workers;
  uint64_t index_bytes_max;  // heads and extents held in memory; past it the oldest segment goes
  obs::Counter& stored_bytes;
  obs::Counter& incomplete;
};

class Fill : public std::enable_shared_from_this<Fill> {
 public:
  // `range`: the bytes this body is of the representation; its end is absent while unknown (chunked, until close).
  Fill(FillDeps deps, CacheKey key, std::shared_ptr<FillTicket> ticket, StoredHeadPtr head, uint64_t begin,
       std::optional<uint64_t> end);

  // Reads the body to its end. The connection goes back to the pool if it can be used again.
  net::Task<> run(UpstreamPool& pool, Exchange exchange);

  // Null when the fill can take no more readers (it became a relay). Starts at `begin` of the wanted range.
  std::unique_ptr<BodySource> reader(uint64_t position);

  const StoredHeadPtr& head() const { return head_; }
  // Its path was invalidated since the request was sent: it will not be published, and holds old bytes.
  bool superseded() const { return ticket_->doomed; }
  uint64_t begin() const { return begin_; }

 private:
  class Reader;
  struct Piece {
    uint64_t offset = 0;
    size_t size_bytes = 0;  // filled so far
    std::shared_ptr<char[]> buffer;
    std::optional<PinnedBytes> stored;
    Place place;
  };

  net::Task<Result<void>> read_all(UpstreamPool& pool, Connection& connection);
  net::Task<Result<size_t>> fill_piece(UpstreamPool& pool, Connection& connection, size_t piece_bytes);
  void stop_storing();
  net::Task<> store_last_piece();
  net::Task<bool> wait_for_window();
  void release_passed();  // REQUIRES: mutex_ held
  void publish();
  void finish(Result<void> result);

  FillDeps deps_;
  const CacheKey key_;
  const std::shared_ptr<FillTicket> ticket_;
  StoredHeadPtr head_;
  const uint64_t begin_;
  const std::optional<uint64_t> end_;

  mutable std::mutex mutex_;
  net::Notification progress_;  // more bytes, or the end
  net::Notification consumed_;  // a reader moved on or left
  std::vector<Piece> pieces_;
  size_t dropped_pieces_ = 0;  // passed by all readers of a relay
  uint64_t available_;
  bool storing_ = true;
  bool complete_ = false;
  std::optional<Error> failed_;
  std::vector<Reader*> readers_;
};

}  // namespace nezha::cache
