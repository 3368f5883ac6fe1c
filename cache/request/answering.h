// Answering: the ways in which a request gets its final answer: from the store, from bytes on their way, straight from
// the source, or that the source failed. Decides nothing about which.
// Threads: the loop's own. Borrows all of its constructor's arguments.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/classify/wanted.h"
#include "cache/request/client_side.h"

namespace nezha::cache {

// A stored response and the bytes of it that the request wants, held in place.
struct Selected {
  StoredHeadPtr head;
  Wanted wanted;
  std::vector<PinnedBody> bodies;  // one for each wanted range
};

// Bytes on their way that make a stored part whole.
struct Completion {
  StoredHeadPtr head;
  std::optional<PinnedBody> before;  // stored, in front of what arrives
  std::optional<PinnedBody> after;
  std::unique_ptr<BodySource> between;
};

class Answering {
 public:
  Answering(SessionDeps& deps, ClientSide& client, const Classified& classified)
      : deps_(deps), client_(client), classified_(classified) {}

  net::Task<> from_store(Selected selected, std::string cache_status, obs::Counter& counter);
  // from_store() for an answer whose first bytes are at hand, without waiting. False: it is not; nothing was sent.
  bool from_store_now(const Selected& selected, std::string_view cache_status, obs::Counter& counter, WallTime now);
  // What from_store_now() left, when the client's is_rest(): the same `selected`.
  net::Task<> finish_now(Selected selected);
  // False when the fill takes no more readers, or not for this request; nothing was sent then.
  net::Task<bool> from_fill(std::shared_ptr<Fill> fill, std::string cache_status);
  // The leader's own view of what is being stored: the source's head as it came. `body`: from `begin` of the fill.
  net::Task<> while_filling(const http::ResponseHead& head, std::unique_ptr<BodySource> body, std::string cache_status);
  // The bytes of the fill from there on, for this client. Null as from Fill::reader().
  std::unique_ptr<BodySource> reader_of(Fill& fill, uint64_t position) const;
  net::Task<> completing(Completion completion, std::string cache_status, obs::Counter& counter);
  // Nothing is stored.
  net::Task<> relay(Exchange exchange, std::string cache_status);
  // 504 when its time ran out, 502 otherwise.
  net::Task<> source_failed(const Error& error, std::string cache_status);

 private:
  Delivery from_bodies(Selected selected, const HeadOptions& options) const;
  std::unique_ptr<BodySource> source_of(const StoredHeadPtr& head, PinnedBody body) const;

  SessionDeps& deps_;
  ClientSide& client_;
  const Classified& classified_;
};

}  // namespace nezha::cache
