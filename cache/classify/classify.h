// classify: request head -> what kind of request it is, where it goes and under which key it is stored. Pure.
// Nothing of the target is decoded or rewritten: variants of percent-encoding are different keys.
// Threads: any.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/classify/routes.h"
#include "nezha/http/cache_control.h"
#include "nezha/http/message.h"
#include "nezha/http/range.h"

namespace nezha::cache {

// Where an object is stored. `path` is "host[:port]/raw/path", `query` the raw query without signature parameters.
// http and https are two origins: what was asked for by https has "+tls" behind the port, which is then always there.
// With `endpoint:` both schemes reach one server by requests that it cannot tell apart, and share one key.
// Writing to a path invalidates it with every query.
struct CacheKey {
  std::string path;
  std::string query;
  friend bool operator==(const CacheKey&, const CacheKey&) = default;
};

// Where to connect for a request.
struct Origin {
  bool tls = false;
  std::string host;  // DNS name or IP address
  uint16_t port = 80;
  bool absolute = true;          // a full name: no search domains
  std::string server_name = {};  // with tls: what the certificate must be for, unless it is for `host`
  // Others that hold the same data: any of them will do.
  std::shared_ptr<const std::vector<config::Endpoint>> more = {};
  friend bool operator==(const Origin&, const Origin&) = default;
};

// Whether a request proves, or may prove, who sends it: its answer is then not shared as it is.
enum class Credentials {
  kNone,
  kField,      // Authorization and its like: RFC 9111 §3.5 says when the answer may be shared
  kSignedUrl,  // in the query, which the key leaves out: the answer is never shared unasked
};

struct Classified {
  enum class Kind {
    kRefuse,  // answer with `status` and `reason`, contact nobody
    kPass,    // relay both ways, store nothing; invalidates `key` when `invalidates`
    kLookUp,  // GET or HEAD that the cache may answer or store
  };
  Kind kind = Kind::kRefuse;
  int status = 0;
  std::string reason;        // kRefuse: body text; kPass: Cache-Status detail
  bool invalidates = false;  // kPass: an unsafe method, or one whose safety is not known (RFC 9111 §4.4)
  bool bulk_delete = false;  // kPass: S3's DeleteObjects, whose body names what it is about
  bool form_upload = false;  // kPass: a POST to S3 whose form names the object it writes
  const config::Upstream* upstream = nullptr;
  Origin origin;
  CacheKey key;
  bool head = false;  // kLookUp: the method is HEAD
  Credentials credentials = Credentials::kNone;
  http::CacheControl control;            // kLookUp
  std::optional<http::RangeSpec> range;  // kLookUp, GET: a single range
  std::vector<http::RangeSpec> ranges;   // or several
  bool conditional = false;              // the client sent a precondition of its own
};

// How a request's connection came in.
struct Arrival {
  bool tls = false;
  std::string server_name;  // with tls: the host that the client opened it for
};

// `loop_id`: this instance's mark in CDN-Loop (RFC 8586). A request that carries it came back to us: 508.
// REQUIRES: the head was accepted by parse_request_head.
Classified classify(const http::RequestHead& head, const Routes& routes, std::string_view loop_id,
                    const Arrival& arrival);

// The index path that a Location or Content-Location of an answer under `key` names, when it has the same authority:
// RFC 9111 §4.4 lets a write invalidate it too.
std::optional<std::string> path_of_reference(const CacheKey& key, std::string_view reference);

// Whether requests of our own, signed with the upstream's keys, may go where this one goes: not to a port that a client
// chose, where somebody else may listen.
bool may_sign_for(const Classified& classified);

// A field that proves, or may prove, who is asking: by its usual name, or by what the name says.
bool is_credential_field(std::string_view name);

// Puts our mark into a forwarded request.
void add_loop_mark(http::Fields& fields, std::string_view loop_id);

// The query without the parameters that only carry a signature (SigV4, SigV2, and Google's V4 presigned URLs).
// `removed` tells whether there were any: such a request carries credentials.
std::string strip_signature(std::string_view query, bool& removed);

}  // namespace nezha::cache
