// StoredHead: what is kept of a response besides its bytes, and the rules for keeping and reusing it (RFC 9111 §3, §4).
// Pure values and decisions. Immutable once made; share by std::shared_ptr<const StoredHead>.
// Threads: any.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache/classify/classify.h"
#include "nezha/base/clock.h"
#include "nezha/http/cache_control.h"
#include "nezha/http/conditional.h"
#include "nezha/http/message.h"

namespace nezha::cache {

struct StoredHead {
  int status = 200;  // of the answer; a 206's bytes are kept under 200
  // The version of the representation whose bytes this head belongs to, given by the store; 0 until it is stored.
  uint64_t generation = 0;
  CacheKey key;  // under which it is stored, as text; set by the store
  // End-to-end fields of the response, without Content-Length, Content-Range, Age and what a hop added.
  http::Fields fields;
  // `fields` as they go on the wire, without checksums of the whole representation (`partial_lines`) and with them.
  std::string lines;
  std::string partial_lines;
  std::optional<uint64_t> total_bytes;  // of the representation; absent while a body of unknown length is under way
  std::optional<http::EntityTag> etag;
  http::CacheControl control;
  http::Lifetime lifetime;
  WallTime response_time{};
  // Of the request that fetched it, or last confirmed it: authorise_each() says what follows.
  Credentials credentials = Credentials::kNone;
  // Vary: field names (lower case) with the values of the request that this response answered. And checksums.h.
  std::vector<std::pair<std::string, std::string>> selecting;

  bool strong() const { return etag && !etag->weak(); }
};

using StoredHeadPtr = std::shared_ptr<const StoredHead>;

// Fills in what follows from `fields` alone: control, etag, lines, partial_lines.
void complete(StoredHead& head);

// The bytes that a 206 holds (RFC 9110 §15.3.7.1). A server may send less or more than was asked. Nothing when it does
// not tell.
std::optional<http::ContentRange> part_of(const Classified& request, const http::ResponseHead& response);

// Why a response is not stored; empty when it is.
std::string store_refusal(const Classified& request, const http::ResponseHead& response,
                          const config::Freshness& freshness, WallTime now);

// REQUIRES: store_refusal() was empty.
StoredHeadPtr make_stored_head(const http::RequestHead& request, const Classified& classified,
                               const http::ResponseHead& response, WallTime request_time, WallTime response_time);

// The head after a 304 for it (RFC 9111 §4.3.4). `credentials`: of the request that it answers.
// `age_min`: what the age is at least, where that is known better than by the fields.
StoredHeadPtr refreshed(const StoredHead& stored, const http::Fields& not_modified, Credentials credentials,
                        WallTime request_time, WallTime response_time, http::Seconds age_min = http::Seconds{0});

// Whether what a 304 made of a stored head may stay in the store: it may forbid that, or name other fields to vary by.
bool may_stay(const StoredHead& stored, const StoredHead& refreshed);

// Whether the source authorises each further reader first: credentials were used, and nothing in the answer allows
// sharing (RFC 9111 §3.5).
bool authorise_each(const StoredHead& stored, const config::Freshness& freshness);

// A copy with the length that was learned at the end of the body.
StoredHeadPtr with_total(const StoredHead& stored, uint64_t total_bytes);

// Whether this stored response was selected by a request like this one (RFC 9111 §4.1).
bool selects(const StoredHead& stored, const http::Fields& request);

// What tells this request's variant from others, by the fields that the stored response varies by.
std::string variant_of(const StoredHead& stored, const http::Fields& request);

// The age as a client would compute it (RFC 9111 §4.2.3).
http::Seconds current_age(const StoredHead& stored, WallTime now);

// What may be done with a stored response for this request.
struct Reuse {
  enum class Kind {
    kServe,
    kServeAndCheck,  // stale, within stale-while-revalidate (RFC 5861 §3): asks the source behind the client's back
    kRevalidate,
  };
  Kind kind = Kind::kRevalidate;
  const char* reason = "";     // kRevalidate: "stale", "request", "policy", "authorise"
  http::Seconds fresh_for{0};  // kServe…: lifetime left; negative when stale is allowed
};
// `approved`: the source let this very reader have this version, not long ago.
Reuse reuse_of(const StoredHead& stored, const Classified& request, const config::Freshness& freshness, WallTime now,
               bool approved);

// Whether a stale response takes the place of an answer that the source failed to give (RFC 9111 §4.2.4, RFC 5861 §4).
enum class SourceFailure { kUnreachable, kServerError };
bool may_serve_stale(const StoredHead& stored, const Classified& request, const config::Freshness& freshness,
                     WallTime now, SourceFailure failure);

// Whether a 200 to HEAD speaks of the stored representation (RFC 9111 §4.3.5); otherwise that is out of date.
bool is_freshened_by_head(const StoredHead& stored, const http::ResponseHead& answer);

}  // namespace nezha::cache
