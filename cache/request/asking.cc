#include "cache/request/asking.h"

#include <algorithm>
#include <array>

namespace nezha::cache {
namespace {

constexpr std::array<std::string_view, 5> kConditions = {"If-Match", "If-None-Match", "If-Modified-Since",
                                                         "If-Unmodified-Since", "If-Range"};

std::optional<http::EntityTag> tag_of(const http::Fields& fields) {
  const auto text = fields.find("ETag");
  return text ? http::parse_entity_tag(*text) : std::nullopt;
}

}  // namespace

http::RequestHead upstream_request(const http::RequestHead& client, const StoredHead* condition,
                                   std::string_view loop_id) {
  http::RequestHead out = client;
  if (!out.target.starts_with('/')) {  // absolute-form becomes origin-form
    const size_t authority = out.target.find("://") + 3;
    const size_t end = std::min(out.target.find_first_of("/?", authority), out.target.size());
    const std::string host = out.target.substr(authority, end - authority);
    out.fields.set("Host", host);
    out.target.erase(0, end);
    if (!out.target.starts_with('/')) out.target.insert(0, "/");
  }
  http::remove_hop_by_hop(out.fields);
  if (out.framing.kind == http::Framing::Kind::kChunked) out.fields.add("Transfer-Encoding", "chunked");
  if (condition) {
    const auto modified = condition->fields.find("Last-Modified");
    if (condition->etag)
      out.fields.add("If-None-Match", condition->etag->text);
    else if (modified)
      out.fields.add("If-Modified-Since", *modified);
  }
  out.fields.add("Via", client.minor_version == 0 ? "1.0 nezha" : "1.1 nezha");
  add_loop_mark(out.fields, loop_id);
  return out;
}

http::RequestHead without_conditions(const http::RequestHead& client) {
  http::RequestHead out = client;
  out.method = "GET";
  for (const auto name : kConditions) out.fields.remove(name);
  out.fields.remove("Range");
  return out;
}

http::RequestHead upstream_range_request(const http::RequestHead& client, const StoredHead& held,
                                         http::ByteRange missing, std::string_view loop_id) {
  http::RequestHead out = upstream_request(without_conditions(client), nullptr, loop_id);
  const bool to_the_end = missing.end == held.total_bytes;
  out.fields.add("Range",
                 "bytes=" + std::to_string(missing.begin) + "-" + (to_the_end ? "" : std::to_string(missing.end - 1)));
  if (held.strong()) out.fields.add("If-Range", held.etag->text);
  return out;
}

http::RequestHead upstream_rest_request(const http::RequestHead& client, const StoredHead& held, http::ByteRange rest,
                                        std::string_view loop_id) {
  http::RequestHead out = upstream_request(without_conditions(client), nullptr, loop_id);
  out.fields.add("Range", "bytes=" + std::to_string(rest.begin) + "-" + std::to_string(rest.end - 1));
  out.fields.add("If-Match", held.etag->text);
  return out;
}

bool may_ask_to_confirm(const http::RequestHead& client, const Classified& classified, const StoredHead& head,
                        WallTime now) {
  if (head.status >= 300) return false;  // conditions are about representations (RFC 9110 §13.2.1)
  if (!head.etag && !head.fields.has("Last-Modified")) return false;
  // A part of the bytes is only as good as a strong validator.
  const bool ranged = classified.range || !classified.ranges.empty();
  if (ranged && !head.strong()) return false;
  // Answers made for two users may carry one date or weak tag: a 304 would not say whose bytes it means.
  if (!head.strong() && authorise_each(head, classified.upstream->freshness)) return false;
  if (!classified.conditional) return true;
  // If-Match with the stored ETag asks for exactly the bytes we hold: current S3 clients sign it into every part of a
  // download. Other conditions are the source's to judge.
  for (const auto name : {"If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}) {
    if (client.fields.has(name)) return false;
  }
  return head.strong() && http::evaluate_preconditions(client.fields, head.fields, now) == http::Precondition::kProceed;
}

bool needs_own_check(const Classified& classified, const StoredHead& head) {
  const config::Freshness& freshness = classified.upstream->freshness;
  return classified.credentials != Credentials::kNone || authorise_each(head, freshness) ||
         classified.control.no_cache || freshness.mode == config::Freshness::Mode::kRevalidate;
}

bool is_for_the_source_to_judge(const http::RequestHead& client, const Classified& classified, const StoredHead& head,
                                WallTime now) {
  return classified.conditional && head.status < 300 &&
         http::evaluate_preconditions(client.fields, head.fields, now) == http::Precondition::kFailed;
}

bool confirms(const http::Fields& not_modified, const StoredHead& stored) {
  const auto etag = tag_of(not_modified);
  return !etag || etag->weak() || !stored.strong() || http::strong_match(*etag, *stored.etag);
}

bool completes(const http::ResponseHead& answer, const StoredHead& held, http::ByteRange missing) {
  if (answer.status != 206 || answer.fields.count("Content-Range") != 1) return false;
  const auto etag = tag_of(answer.fields);
  if (!etag || !held.strong() || !http::strong_match(*etag, *held.etag)) return false;
  const auto range = http::parse_content_range(*answer.fields.find("Content-Range"));
  if (!range || range->range != missing || range->total_bytes != held.total_bytes) return false;
  return answer.framing.kind == http::Framing::Kind::kChunked ||
         (answer.framing.kind == http::Framing::Kind::kLength && answer.framing.length_bytes == missing.size_bytes());
}

}  // namespace nezha::cache
