// deliver: an answer's head and body onto the client's stream, with back-pressure: the source is read no faster than
// the client takes it. Head and first body bytes leave in one write.
// Threads: the client's loop.
#pragma once

#include <memory>
#include <string>

#include "cache/deliver/body_source.h"
#include "cache/deliver/send_meter.h"
#include "cache/store/store.h"
#include "nezha/base/clock.h"
#include "nezha/net/stream.h"

namespace nezha::cache {

// Bytes pinned in a tier: waits only for what has to be brought in from its medium.
std::unique_ptr<BodySource> make_pinned_source(Store& store, PinnedBody body);

struct Delivery {
  std::string head;                  // complete, with its empty line
  std::unique_ptr<BodySource> body;  // may be null
  bool chunked = false;              // frame the body in chunks
  // What the head promised: a body of another length must not pass for whole, nor shift the next answer.
  std::optional<uint64_t> length = std::nullopt;
};

// What the kernel takes of a whole answer without waiting, in bytes of head and body; deliver() the rest. Nothing when
// its first bytes are not at hand, or the connection failed: then nothing was sent, and deliver() finds the same.
std::optional<size_t> begin_delivery(net::Stream& client, std::string_view head, const PinnedBody* body, Store& store,
                                     SendMeter& meter);

// Fails when the client is gone or the source fails; the stream must then be closed with a reset. `sent_bytes` counts
// what the kernel took. Bytes that leave the memory while the client takes its time are brought in again before they
// are touched.
net::Task<Result<void>> deliver(net::Stream& client, Delivery delivery, Store& store, SendMeter& meter,
                                const Clock& clock, uint64_t& sent_bytes);

}  // namespace nezha::cache
