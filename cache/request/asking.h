// asking: the request that goes to the source for a client's request, and what may be added to it. Pure.
// A client's own fields go on as they came, so that signatures over them hold.
// Threads: any.
#pragma once

#include <string_view>

#include "cache/classify/stored_head.h"

namespace nezha::cache {

// Everything end-to-end byte for byte, plus our marks, and with `condition` one unsigned condition for that response.
http::RequestHead upstream_request(const http::RequestHead& client, const StoredHead* condition,
                                   std::string_view loop_id);

// The same for a part of a representation that nobody asked for as such: the client's conditions and Range are
// replaced. With a strong validator in `held` the source sends all instead when it has another version (If-Range).
// REQUIRES: the client's request carries no credentials.
http::RequestHead upstream_range_request(const http::RequestHead& client, const StoredHead& held,
                                         http::ByteRange missing, std::string_view loop_id);

// The same for what is left of a representation whose beginning was sent: nothing but that version will do (If-Match).
// Of a client with credentials too: where its signature covers what is replaced, the source refuses.
// REQUIRES: held.strong().
http::RequestHead upstream_rest_request(const http::RequestHead& client, const StoredHead& held, http::ByteRange rest,
                                        std::string_view loop_id);

// The client's request without its conditions and Range, as a GET: for asking in the background.
http::RequestHead without_conditions(const http::RequestHead& client);

// Whether a condition of ours for this response can be sent along with this request.
bool may_ask_to_confirm(const http::RequestHead& client, const Classified& classified, const StoredHead& head,
                        WallTime now);

// Whether this reader has to be confirmed by the source with a request of its own.
bool needs_own_check(const Classified& classified, const StoredHead& head);

// Whether the client's condition cannot be judged from the store: it asks for another version than the stored one,
// which may be the current one.
bool is_for_the_source_to_judge(const http::RequestHead& client, const Classified& classified, const StoredHead& head,
                                WallTime now);

// A 304 that names another strong entity tag is not about the bytes we hold (RFC 9111 §4.3.4).
bool confirms(const http::Fields& not_modified, const StoredHead& stored);

// Whether a 206 holds exactly this part of the held representation, as a strong validator proves (RFC 9110 §15.3.7.3).
bool completes(const http::ResponseHead& answer, const StoredHead& held, http::ByteRange missing);

}  // namespace nezha::cache
