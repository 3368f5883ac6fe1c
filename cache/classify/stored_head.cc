#include "cache/classify/stored_head.h"

#include <algorithm>
#include <array>

#include "nezha/base/text.h"
#include "nezha/http/date.h"

namespace nezha::cache {
namespace {

using config::Freshness;
using http::Seconds;

// Dropped when a response is stored: rebuilt for every answer, or meant for one hop or one client.
constexpr std::array<std::string_view, 6> kNotStored = {"Content-Length", "Content-Range", "Age", "Via",
                                                        "Cache-Status",   "CDN-Loop"};

// Of the whole representation; on a partial answer clients would check them against the part.
bool is_checksum(std::string_view name) {
  return iequals(name.substr(0, 15), "x-amz-checksum-") || iequals(name, "Content-MD5") || iequals(name, "Digest") ||
         iequals(name, "Repr-Digest") || iequals(name, "Content-Digest");
}

// A 304 updates all stored fields but those that describe the stored bytes themselves (RFC 9111 §3.2).
bool is_updated_by_304(std::string_view name) {
  return !iequals(name, "Content-Length") && !iequals(name, "Content-Range") && !iequals(name, "Content-Encoding") &&
         !iequals(name, "Content-Type") && !iequals(name, "ETag") && !is_checksum(name);
}

std::string selecting_value(const http::Fields& request, std::string_view name) {
  std::string value;
  for (const auto member : http::list_members(request, name)) {
    if (!value.empty()) value += ',';
    value += member;
  }
  return value;
}

void derive(StoredHead& head, WallTime request_time, WallTime response_time) {
  complete(head);
  head.response_time = response_time;
  head.lifetime = http::lifetime_of(head.fields, head.control, request_time, response_time);
}

void drop_unstored(http::Fields& fields) {
  http::remove_hop_by_hop(fields);
  for (const auto name : kNotStored) fields.remove(name);
}

// A 206 must answer exactly the single range that was asked, and say so.
const char* partial_refusal(const Classified& request, const http::ResponseHead& response) {
  if (!request.range) return "unasked-partial";
  const auto value = response.fields.find("Content-Range");
  const auto range = value ? http::parse_content_range(*value) : std::nullopt;
  if (!range || !range->range) return "bad-content-range";
  if (!range->total_bytes) return "unknown-total";
  const auto wanted = request.range->resolve(*range->total_bytes);
  if (!wanted || *wanted != *range->range) return "other-range";
  const bool known_length = response.framing.kind == http::Framing::Kind::kLength;
  if (known_length && response.framing.length_bytes != range->range->size_bytes()) return "bad-content-range";
  const auto etag_text = response.fields.find("ETag");
  const auto etag = etag_text ? http::parse_entity_tag(*etag_text) : std::nullopt;
  if (!etag || etag->weak()) return "no-strong-validator";
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
    if (!is_checksum(name)) head.partial_lines += line;
  });
}

std::string store_refusal(const Classified& request, const http::ResponseHead& response, const Freshness& freshness,
                          WallTime now) {
  if (request.head) return "head";
  if (response.status != 200 && response.status != 206) return "status";
  const auto control = http::parse_cache_control(response.fields);
  if (control.no_store) return "no-store";
  if (control.is_private) return "private";
  if (response.fields.has("Set-Cookie")) return "set-cookie";
  for (const auto member : http::list_members(response.fields, "Vary")) {
    if (member == "*") return "vary-star";
  }
  for (const auto coding : http::list_members(response.fields, "Content-Encoding")) {
    if (iequals(coding, "aws-chunked")) return "aws-chunked";
  }
  if (response.status == 206) {
    if (const char* reason = partial_refusal(request, response); *reason) return reason;
  }
  // A body that ends with the connection ends the same way when its sender dies: nothing proves it whole.
  if (response.framing.kind == http::Framing::Kind::kUntilClose) return "unknown-end";
  // Every S3 object has an ETag; what has none is a listing or another answer about objects.
  if (request.upstream->protocol == config::Protocol::kS3 && !response.fields.has("ETag")) return "s3-no-etag";
  const bool validator = response.fields.has("ETag") || response.fields.has("Last-Modified");
  const bool by_policy = freshness.mode == Freshness::Mode::kTtl || freshness.mode == Freshness::Mode::kImmutable;
  if (!validator && !by_policy) {
    const auto lifetime = http::lifetime_of(response.fields, control, now, now);
    if (lifetime.fresh_for <= lifetime.initial_age || control.no_cache) return "no-freshness";
  }
  return "";
}

StoredHeadPtr make_stored_head(const http::RequestHead& request, const Classified& classified,
                               const http::ResponseHead& response, WallTime request_time, WallTime response_time) {
  auto head = std::make_shared<StoredHead>();
  head->fields = response.fields;
  if (response.status == 206) {
    const auto range = http::parse_content_range(*response.fields.find("Content-Range"));
    head->total_bytes = range->total_bytes;
    std::vector<std::string> checksums;
    response.fields.for_each([&](std::string_view name, std::string_view) {
      if (is_checksum(name)) checksums.emplace_back(name);
    });
    for (const auto& name : checksums) head->fields.remove(name);
  } else if (response.framing.kind == http::Framing::Kind::kLength) {
    head->total_bytes = response.framing.length_bytes;
  }
  drop_unstored(head->fields);
  if (!head->fields.has("Date")) head->fields.add("Date", http::format_date(response_time));
  // Age belongs to the lifetime though it is not stored: computed from the response as it came.
  derive(*head, request_time, response_time);
  head->lifetime = http::lifetime_of(response.fields, head->control, request_time, response_time);
  head->credentials = classified.credentials;
  for (const auto name : http::list_members(response.fields, "Vary")) {
    head->selecting.emplace_back(to_lower(name), selecting_value(request.fields, name));
  }
  return head;
}

StoredHeadPtr refreshed(const StoredHead& stored, const http::Fields& not_modified, Credentials credentials,
                        WallTime request_time, WallTime response_time, Seconds age_min) {
  auto head = std::make_shared<StoredHead>(stored);
  // It may have become private since an anonymous reader fetched it; one who is served now proves that it is not.
  const bool says_whose = credentials != Credentials::kNone || stored.strong();
  head->credentials = says_whose ? credentials : stored.credentials;
  http::Fields update = not_modified;
  drop_unstored(update);
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
  head->lifetime = http::lifetime_of(with_age, head->control, request_time, response_time);
  head->lifetime.initial_age = std::max(head->lifetime.initial_age, age_min);
  return head;
}

bool may_stay(const StoredHead& stored, const StoredHead& refreshed) {
  return !refreshed.control.no_store && !refreshed.control.is_private &&
         stored.fields.joined("Vary") == refreshed.fields.joined("Vary");
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
  return std::all_of(stored.selecting.begin(), stored.selecting.end(),
                     [&](const auto& entry) { return selecting_value(request, entry.first) == entry.second; });
}

Seconds current_age(const StoredHead& stored, WallTime now) {
  const auto resident = std::chrono::duration_cast<Seconds>(now - stored.response_time);
  return stored.lifetime.initial_age + std::max(Seconds{0}, resident);
}

Reuse reuse_of(const StoredHead& stored, const Classified& request, const Freshness& freshness, WallTime now) {
  Reuse out;
  const auto revalidate = [&](const char* reason) {
    out.reason = reason;
    return out;
  };
  if (authorise_each(stored, freshness)) return revalidate("authorise");
  if (request.control.no_cache) return revalidate("request");
  if (freshness.mode == Freshness::Mode::kRevalidate) return revalidate("policy");
  if (freshness.mode == Freshness::Mode::kImmutable) return {Reuse::Kind::kServe, "", Seconds{31536000}};

  const Seconds age = current_age(stored, now);
  if (freshness.mode == Freshness::Mode::kTtl) {
    const auto resident = std::chrono::duration_cast<Seconds>(now - stored.response_time);
    if (resident < Seconds{0} || resident >= freshness.ttl_s) return revalidate("stale");
    return {Reuse::Kind::kServe, "", freshness.ttl_s - resident};
  }
  if (stored.control.no_cache || !stored.control.no_cache_fields.empty()) return revalidate("stale");
  out.fresh_for = stored.lifetime.fresh_for - age;
  if (request.control.max_age && age > *request.control.max_age) return revalidate("request");
  if (request.control.min_fresh && out.fresh_for < *request.control.min_fresh) return revalidate("request");
  if (out.fresh_for > Seconds{0}) {
    out.kind = Reuse::Kind::kServe;
    return out;
  }
  const bool stale_allowed =
      !stored.control.must_revalidate && !stored.control.proxy_revalidate && !stored.control.s_maxage &&
      (request.control.max_stale_any || (request.control.max_stale && -out.fresh_for <= *request.control.max_stale));
  if (!stale_allowed) return revalidate("stale");
  out.kind = Reuse::Kind::kServe;
  return out;
}

}  // namespace nezha::cache
