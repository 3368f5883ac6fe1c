#include "cache/classify/stored_head.h"

#include <algorithm>
#include <array>

#include "cache/classify/checksums.h"
#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "nezha/http/date.h"

namespace nezha::cache {
namespace {

using config::Freshness;
using http::Seconds;

// Dropped when a response is stored: rebuilt for every answer, or meant for one hop or one client.
constexpr std::array<std::string_view, 5> kNotStored = {"Content-Length", "Age", "Via", "Cache-Status", "CDN-Loop"};

// Understood well enough for must-understand (RFC 9111 §5.2.2.3): RFC 9110 defines them.
bool is_understood(int status) {
  static constexpr std::array kStatuses = {200, 203, 204, 206, 300, 301, 302, 303, 307, 308, 400, 402, 403, 404, 405,
                                           406, 408, 409, 410, 411, 413, 414, 415, 422, 500, 501, 502, 503, 504, 505};
  return std::find(kStatuses.begin(), kStatuses.end(), status) != kStatuses.end();
}

// RFC 9110 §15.1.
bool is_heuristically_cacheable(int status) {
  static constexpr std::array kStatuses = {200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501};
  return std::find(kStatuses.begin(), kStatuses.end(), status) != kStatuses.end();
}

// About this one request, or this one client, whatever lifetime they claim (401, 407, 412, 416, 417; RFC 9110 §15.5),
// or forbidden to store (428, 429, 431, 511; RFC 6585).
bool is_about_one_request(int status) {
  static constexpr std::array kStatuses = {304, 401, 407, 412, 416, 417, 421, 425, 426, 428, 429, 431, 511};
  return std::find(kStatuses.begin(), kStatuses.end(), status) != kStatuses.end();
}

// Of the whole representation; on a partial answer clients would check them against the part.
bool is_checksum(std::string_view name) {
  return is_s3_checksum(name) || iequals(name, "Content-MD5") || iequals(name, "Digest") ||
         iequals(name, "Repr-Digest") || iequals(name, "Content-Digest");
}

// A 304 updates all stored fields but those that describe the stored bytes themselves (RFC 9111 §3.2).
bool is_updated_by_304(std::string_view name) {
  return !iequals(name, "Content-Length") && !iequals(name, "Content-Range") && !iequals(name, "Content-Encoding") &&
         !iequals(name, "Content-Type") && !iequals(name, "ETag") && !is_checksum(name);
}

// White space around members never counts; of some fields the order and the case of letters do not either
// (RFC 9111 §4.1; RFC 9110 §12.5.2 to §12.5.4).
std::string selecting_value(const http::Fields& request, std::string_view name) {
  const bool unordered =
      iequals(name, "Accept-Language") || iequals(name, "Accept-Encoding") || iequals(name, "Accept-Charset");
  std::vector<std::string> members;
  for (const auto member : http::list_members(request, name)) {
    members.push_back(unordered ? to_lower(member) : std::string(member));
    if (unordered) std::erase_if(members.back(), [](char c) { return c == ' ' || c == '\t'; });
  }
  if (unordered) std::sort(members.begin(), members.end());
  std::string value;
  for (const auto& member : members) {
    if (!value.empty()) value += ',';
    value += member;
  }
  return value;
}

bool may_guess_lifetime(int status, const http::CacheControl& control) {
  return is_heuristically_cacheable(status) || control.is_public;
}

bool withholds(const http::CacheControl& control, std::string_view name) {
  return std::any_of(control.withheld_fields.begin(), control.withheld_fields.end(),
                     [&](const std::string& withheld) { return iequals(withheld, name); });
}

http::Lifetime lifetime_in(const http::Fields& fields, const StoredHead& head, WallTime request_time,
                           WallTime response_time) {
  return http::lifetime_of(fields, head.control, request_time, response_time,
                           may_guess_lifetime(head.status, head.control));
}

void derive(StoredHead& head, WallTime request_time, WallTime response_time) {
  complete(head);
  head.response_time = response_time;
  head.lifetime = lifetime_in(head.fields, head, request_time, response_time);
}

void drop_unstored(http::Fields& fields, const http::CacheControl& control) {
  http::remove_hop_by_hop(fields);
  for (const auto name : kNotStored) fields.remove(name);
  for (const auto& name : control.withheld_fields) fields.remove(name);
}

bool is_strong(const http::Fields& fields) {
  const auto text = fields.find("ETag");
  const auto etag = text ? http::parse_entity_tag(*text) : std::nullopt;
  return etag && !etag->weak();
}

// Why a 206 is not stored, or "".
const char* partial_refusal(const Classified& request, const http::ResponseHead& response, const Freshness& freshness) {
  if (!request.range) return "unasked-partial";
  if (!part_of(request, response)) return "bad-content-range";
  // Without a strong validator it can only be used by itself, while it is fresh.
  const bool alone = freshness.mode == Freshness::Mode::kHttp && request.credentials == Credentials::kNone;
  return is_strong(response.fields) || alone ? "" : "no-strong-validator";
}

// What is not 200 or 206 is kept for anonymous requests that could not have caused it, where HTTP's own rules of
// lifetime are in force.
const char* status_refusal(const Classified& request, const http::ResponseHead& response, const Freshness& freshness) {
  if (response.status == 200 || response.status == 206) return "";
  if (is_about_one_request(response.status)) return "status";
  if (freshness.mode != Freshness::Mode::kHttp || request.upstream->protocol == config::Protocol::kS3) return "status";
  if (request.credentials != Credentials::kNone) return "status";
  if (request.conditional || request.range || !request.ranges.empty()) return "status";
  // A redirect must not outlive the signature in it.
  const auto location = response.fields.find("Location").value_or("");
  const size_t question = location.find('?');
  bool is_signed = false;
  if (question != std::string_view::npos) (void)strip_signature(location.substr(question + 1), is_signed);
  return is_signed ? "signed-location" : "";
}

const char* control_refusal(const http::ResponseHead& response, const http::CacheControl& control) {
  if (control.must_understand && !is_understood(response.status)) return "status";
  if (control.no_store && !control.must_understand) return "no-store";
  if (control.is_private) return "private";
  if (response.fields.has("Set-Cookie") && !withholds(control, "Set-Cookie")) return "set-cookie";
  for (const auto member : http::list_members(response.fields, "Vary")) {
    if (member == "*") return "vary-star";
  }
  for (const auto coding : http::list_members(response.fields, "Content-Encoding")) {
    if (iequals(coding, "aws-chunked")) return "aws-chunked";
  }
  return "";
}

}  // namespace

void complete(StoredHead& head) {
  head.control = http::parse_cache_control(head.fields);
  const auto etag = head.fields.find("ETag");
  head.etag = etag ? http::parse_entity_tag(*etag) : std::nullopt;
  head.lines.clear();
  head.partial_lines.clear();
  head.fields.for_each([&](std::string_view name, std::string_view value) {
    const std::string line = std::string(name) + ": " + std::string(value) + "\r\n";
    head.lines += line;
    if (!is_checksum(name) && !iequals(name, "Content-Range")) head.partial_lines += line;
  });
}

std::optional<http::ContentRange> part_of(const Classified& request, const http::ResponseHead& response) {
  const auto value = response.fields.find("Content-Range");
  auto out = value ? http::parse_content_range(*value) : std::nullopt;
  if (!out || !out->range || response.fields.count("Content-Range") != 1) return std::nullopt;
  if (response.framing.kind != http::Framing::Kind::kLength) return out;
  const uint64_t length_bytes = response.framing.length_bytes;
  if (length_bytes == out->range->size_bytes()) return out;
  // It contradicts its body. Where it begins is what any reader goes by; when the last bytes were asked for, and so
  // many came, they end where the representation ends. Never good enough to be joined with other parts.
  const bool suffix = request.range && !request.range->first && request.range->last == length_bytes;
  if (!suffix || is_strong(response.fields) || length_bytes == 0) return std::nullopt;
  out->range->end = out->range->begin + length_bytes;
  out->total_bytes = out->range->end;
  return out;
}

std::string store_refusal(const Classified& request, const http::ResponseHead& response, const Freshness& freshness,
                          WallTime now) {
  if (request.head) return "head";
  const auto control = http::parse_cache_control(response.fields);
  if (const char* reason = status_refusal(request, response, freshness); *reason) return reason;
  if (const char* reason = control_refusal(response, control); *reason) return reason;
  if (response.status == 206) {
    if (const char* reason = partial_refusal(request, response, freshness); *reason) return reason;
  }
  // A body that ends with the connection ends the same way when its sender dies: nothing proves it whole.
  if (response.framing.kind == http::Framing::Kind::kUntilClose) return "unknown-end";
  // Every S3 object has an ETag; what has none is a listing or another answer about objects.
  if (request.upstream->protocol == config::Protocol::kS3 && !response.fields.has("ETag")) return "s3-no-etag";
  const bool any_validator = response.fields.has("ETag") || response.fields.has("Last-Modified");
  // Worth keeping though stale, where RFC 9111 §3 allows to keep it without a stated lifetime.
  const bool success = response.status < 300 && is_heuristically_cacheable(response.status);
  const bool validator = response.status == 206 ? is_strong(response.fields) : success && any_validator;
  const bool by_policy = freshness.mode == Freshness::Mode::kTtl || freshness.mode == Freshness::Mode::kImmutable;
  if (!validator && !by_policy) {
    const bool guess = may_guess_lifetime(response.status, control);
    const auto lifetime = http::lifetime_of(response.fields, control, now, now, guess);
    if (lifetime.fresh_for <= lifetime.initial_age || control.no_cache) return "no-freshness";
  }
  return "";
}

StoredHeadPtr make_stored_head(const http::RequestHead& request, const Classified& classified,
                               const http::ResponseHead& response, WallTime request_time, WallTime response_time) {
  auto head = std::make_shared<StoredHead>();
  head->fields = response.fields;
  if (response.status == 206) {
    head->total_bytes = part_of(classified, response)->total_bytes;
    std::vector<std::string> dropped{"Content-Range"};
    response.fields.for_each([&](std::string_view name, std::string_view) {
      if (is_checksum(name)) dropped.emplace_back(name);
    });
    for (const auto& name : dropped) head->fields.remove(name);
  } else {
    head->status = response.status;
    if (response.framing.kind == http::Framing::Kind::kLength) head->total_bytes = response.framing.length_bytes;
    if (response.framing.kind == http::Framing::Kind::kNone) head->total_bytes = 0;
  }
  drop_unstored(head->fields, http::parse_cache_control(response.fields));
  if (!head->fields.has("Date")) head->fields.add("Date", http::format_date(response_time));
  // Age belongs to the lifetime though it is not stored: computed from the response as it came.
  derive(*head, request_time, response_time);
  head->lifetime = lifetime_in(response.fields, *head, request_time, response_time);
  head->credentials = classified.credentials;
  for (const auto name : http::list_members(response.fields, "Vary")) {
    head->selecting.emplace_back(to_lower(name), selecting_value(request.fields, name));
  }
  note_checksum_mode(*head, request.fields);
  return head;
}

StoredHeadPtr refreshed(const StoredHead& stored, const http::Fields& not_modified, Credentials credentials,
                        WallTime request_time, WallTime response_time, Seconds age_min) {
  auto head = std::make_shared<StoredHead>(stored);
  // It may have become private since an anonymous reader fetched it; one who is served now proves that it is not.
  const bool says_whose = credentials != Credentials::kNone || stored.strong();
  head->credentials = says_whose ? credentials : stored.credentials;
  http::Fields update = not_modified;
  drop_unstored(update, http::parse_cache_control(not_modified));
  update.for_each([&](std::string_view name, std::string_view) {
    if (is_updated_by_304(name)) head->fields.remove(name);
  });
  update.for_each([&](std::string_view name, std::string_view value) {
    if (is_updated_by_304(name) && !iequals(name, "Set-Cookie")) head->fields.add(name, value);
  });
  derive(*head, request_time, response_time);
  // Age of the 304 itself counts from now on.
  http::Fields with_age = head->fields;
  if (const auto age = not_modified.find("Age")) with_age.add("Age", *age);
  if (!not_modified.has("Date")) with_age.set("Date", http::format_date(response_time));
  head->lifetime = lifetime_in(with_age, *head, request_time, response_time);
  head->lifetime.initial_age = std::max(head->lifetime.initial_age, age_min);
  return head;
}

bool may_stay(const StoredHead& stored, const StoredHead& refreshed) {
  const bool forbidden = refreshed.control.no_store && !refreshed.control.must_understand;
  return !forbidden && !refreshed.control.is_private && stored.fields.joined("Vary") == refreshed.fields.joined("Vary");
}

// s-maxage and must-revalidate allow sharing for the lifetime they bound. Where the admin's policy takes the place of
// that lifetime, only `public` does.
bool authorise_each(const StoredHead& stored, const Freshness& freshness) {
  if (stored.credentials == Credentials::kNone) return false;
  if (stored.credentials == Credentials::kSignedUrl) return true;
  if (stored.control.is_public) return false;
  return freshness.mode != Freshness::Mode::kHttp || !(stored.control.s_maxage || stored.control.must_revalidate);
}

StoredHeadPtr with_total(const StoredHead& stored, uint64_t total_bytes) {
  auto head = std::make_shared<StoredHead>(stored);
  head->total_bytes = total_bytes;
  return head;
}

bool selects(const StoredHead& stored, const http::Fields& request) {
  if (asks_for_checksums(request) && !has_checksums(stored)) return false;
  return std::all_of(stored.selecting.begin(), stored.selecting.end(), [&](const auto& entry) {
    return entry.first == kChecksumMode || selecting_value(request, entry.first) == entry.second;
  });
}

std::string variant_of(const StoredHead& stored, const http::Fields& request) {
  std::string out;
  for (const auto& [name, value] : stored.selecting) {
    if (name != kChecksumMode) out += name + ":" + selecting_value(request, name) + "\n";
  }
  if (asks_for_checksums(request)) out += kChecksumMode;
  return out;
}

Seconds current_age(const StoredHead& stored, WallTime now) {
  const auto resident = std::chrono::duration_cast<Seconds>(now - stored.response_time);
  return stored.lifetime.initial_age + std::max(Seconds{0}, resident);
}

// RFC 9111 §4.2.4: the source's own word against any use of a stale answer.
bool forbids_stale(const StoredHead& stored) {
  return stored.control.must_revalidate || stored.control.proxy_revalidate || stored.control.s_maxage;
}

Reuse reuse_of(const StoredHead& stored, const Classified& request, const Freshness& freshness, WallTime now,
               bool approved) {
  Reuse out;
  const auto revalidate = [&](const char* reason) {
    out.kind = Reuse::Kind::kRevalidate;
    out.reason = reason;
    return out;
  };
  if (authorise_each(stored, freshness) && !approved) return revalidate("authorise");
  // Who proves who they are may be told something else than everybody is.
  if (stored.status >= 300 && request.credentials != Credentials::kNone) return revalidate("authorise");
  if (request.control.no_cache) return revalidate("request");
  if (freshness.mode == Freshness::Mode::kRevalidate) return revalidate("policy");
  // Of other answers only their own lifetime counts.
  if (stored.status != 200 && freshness.mode != Freshness::Mode::kHttp) return revalidate("policy");
  if (freshness.mode == Freshness::Mode::kImmutable) return {Reuse::Kind::kServe, "", Seconds{31536000}};

  const Seconds age = current_age(stored, now);
  if (freshness.mode == Freshness::Mode::kTtl) {
    const auto resident = std::chrono::duration_cast<Seconds>(now - stored.response_time);
    if (resident < Seconds{0} || resident >= freshness.ttl_s) return revalidate("stale");
    return {Reuse::Kind::kServe, "", freshness.ttl_s - resident};
  }
  if (stored.control.no_cache) return revalidate("stale");
  out.fresh_for = stored.lifetime.fresh_for - age;
  if (request.control.max_age && age > *request.control.max_age) return revalidate("request");
  if (request.control.min_fresh && out.fresh_for < *request.control.min_fresh) return revalidate("request");
  out.kind = Reuse::Kind::kServe;
  if (out.fresh_for > Seconds{0}) return out;
  if (!forbids_stale(stored)) {
    const Seconds stale_for = -out.fresh_for;
    const auto& wanted = request.control;
    if (wanted.max_stale_any || (wanted.max_stale && stale_for <= *wanted.max_stale)) return out;
    if (const auto& window = stored.control.stale_while_revalidate; window && stale_for < *window) {
      out.kind = Reuse::Kind::kServeAndCheck;
      return out;
    }
  }
  return revalidate("stale");
}

bool may_serve_stale(const StoredHead& stored, const Classified& request, const Freshness& freshness, WallTime now,
                     SourceFailure failure) {
  if (freshness.mode != Freshness::Mode::kHttp || authorise_each(stored, freshness)) return false;
  if (stored.control.no_cache || forbids_stale(stored)) return false;
  const http::CacheControl& wanted = request.control;
  if (wanted.no_cache || wanted.max_age || wanted.min_fresh) return false;
  const Seconds stale_for = current_age(stored, now) - stored.lifetime.fresh_for;
  const auto& window = stored.control.stale_if_error ? stored.control.stale_if_error : wanted.stale_if_error;
  if (window) return stale_for <= *window;
  return failure == SourceFailure::kUnreachable && stale_for <= limits::kStaleWhenUnreachableMax;
}

bool is_freshened_by_head(const StoredHead& stored, const http::ResponseHead& answer) {
  for (const auto name : {"ETag", "Last-Modified"}) {
    const auto received = answer.fields.find(name);
    if (received && received != stored.fields.find(name)) return false;
  }
  const auto length = answer.fields.find("Content-Length");
  return !length || !stored.total_bytes || *length == std::to_string(*stored.total_bytes);
}

}  // namespace nezha::cache
