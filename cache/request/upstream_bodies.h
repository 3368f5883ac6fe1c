// Bodies that come to one client straight from the source: a relayed one, and the rest of one whose stored bytes
// turn out to be lost after its head was sent, or that is too slow for the others on a relay. Threads: the loop's own.
#pragma once

#include <memory>

#include "cache/deliver/body_source.h"
#include "cache/request/session_deps.h"

namespace nezha::cache {

// Borrows the connection; its body was begun.
std::unique_ptr<BodySource> make_relay_source(Connection& connection, const Clock& clock);

// Whether lost bytes of that response can be asked for anew while the client waits: it takes a strong validator to
// tell that they are the same bytes, and a client that lets the source be asked.
bool may_continue(const StoredHead& head, const Classified& classified);

// Stored bytes; from the first piece on that cannot be read or is damaged, the same bytes from the source, asked for
// with the client's own request. The response is dropped from the store then. Fails with kRetryLater when the source
// does not send exactly what is left of exactly that version.
// Borrows `deps`, `request` and `classified`. REQUIRES: may_continue().
std::unique_ptr<BodySource> make_continued_source(SessionDeps& deps, const http::RequestHead& request,
                                                  const Classified& classified, StoredHeadPtr head, PinnedBody body);

// The same for a reader of a fill, of these bytes, when it is cut off; nothing is dropped from the store.
std::unique_ptr<BodySource> make_continued_reader(SessionDeps& deps, const http::RequestHead& request,
                                                  const Classified& classified, StoredHeadPtr head,
                                                  http::ByteRange range, std::unique_ptr<BodySource> reader);

}  // namespace nezha::cache
