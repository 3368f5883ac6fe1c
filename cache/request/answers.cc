#include "cache/request/answers.h"

#include <array>

#include "cache/classify/checksums.h"
#include "nezha/base/text.h"
#include "nezha/http/date.h"

namespace nezha::cache {
namespace {

void append_tail(std::string& out, const HeadOptions& options) {
  out.append("Via: 1.1 nezha\r\nCache-Status: nezha; ").append(options.cache_status).append("\r\n");
  if (options.close) out.append("Connection: close\r\n");
  out.append("\r\n");
}

void append_age(std::string& out, const StoredHead& stored, WallTime now) {
  out.append("Age: ").append(std::to_string(current_age(stored, now).count())).append("\r\n");
}

}  // namespace

std::string hit_status(http::Seconds ttl) { return "hit; ttl=" + std::to_string(ttl.count()); }

std::string stored_head_text(const StoredHead& stored, std::optional<uint64_t> length, bool chunked,
                             const HeadOptions& options) {
  std::string out;
  out.reserve(stored.lines.size() + 256);
  out.append("HTTP/1.1 ").append(std::to_string(stored.status)).append(" ").append(http::reason_of(stored.status));
  const bool fewer = !options.checksums && has_checksums(stored);
  out.append("\r\n").append(fewer ? lines_without_checksums(stored) : stored.lines);
  if (stored.status == 204) {
    // It has no length to tell (RFC 9110 §8.6).
  } else if (length) {
    out.append("Content-Length: ").append(std::to_string(*length)).append("\r\n");
  } else if (chunked) {
    out.append("Transfer-Encoding: chunked\r\n");
  }
  append_age(out, stored, options.now);
  append_tail(out, options);
  return out;
}

std::string stored_partial_text(const StoredHead& stored, http::ByteRange range, const HeadOptions& options) {
  std::string out;
  out.reserve(stored.lines.size() + 320);
  out.append("HTTP/1.1 206 Partial Content\r\n").append(stored.partial_lines);
  out.append("Content-Range: ").append(http::format_content_range(range, stored.total_bytes)).append("\r\n");
  out.append("Content-Length: ").append(std::to_string(range.size_bytes())).append("\r\n");
  append_age(out, stored, options.now);
  append_tail(out, options);
  return out;
}

std::string stored_multipart_text(const StoredHead& stored, std::string_view content_type, uint64_t size_bytes,
                                  const HeadOptions& options) {
  std::string out;
  out.reserve(stored.lines.size() + 320);
  out.append("HTTP/1.1 206 Partial Content\r\n");
  for (const auto line : split(stored.partial_lines, '\n')) {
    if (!line.empty() && !iequals(line.substr(0, line.find(':')), "Content-Type")) out.append(line).append("\n");
  }
  out.append("Content-Type: ").append(content_type).append("\r\n");
  out.append("Content-Length: ").append(std::to_string(size_bytes)).append("\r\n");
  append_age(out, stored, options.now);
  append_tail(out, options);
  return out;
}

std::string stored_unsatisfiable_text(const StoredHead& stored, const HeadOptions& options) {
  std::string out = "HTTP/1.1 416 Range Not Satisfiable\r\nDate: " + http::format_date(options.now) + "\r\n";
  out += "Content-Range: bytes */" + std::to_string(*stored.total_bytes) + "\r\nContent-Length: 0\r\n";
  append_tail(out, options);
  return out;
}

std::string stored_condition_text(const StoredHead& stored, http::Precondition outcome, const HeadOptions& options) {
  static constexpr std::array<std::string_view, 7> kOn304 = {
      "Cache-Control", "Content-Location", "Date", "ETag", "Expires", "Vary", "Last-Modified"};
  std::string out;
  if (outcome == http::Precondition::kFailed) {
    out = "HTTP/1.1 412 Precondition Failed\r\nDate: " + http::format_date(options.now) + "\r\nContent-Length: 0\r\n";
  } else {
    out = "HTTP/1.1 304 Not Modified\r\n";
    stored.fields.for_each([&](std::string_view name, std::string_view value) {
      for (const auto wanted : kOn304) {
        if (iequals(name, wanted)) out.append(name).append(": ").append(value).append("\r\n");
      }
    });
    append_age(out, stored, options.now);
  }
  append_tail(out, options);
  return out;
}

RelayFraming relay_framing(const http::ResponseHead& head, int client_minor_version) {
  using Kind = http::Framing::Kind;
  RelayFraming out;
  if (head.framing.kind != Kind::kChunked && head.framing.kind != Kind::kUntilClose) return out;
  if (client_minor_version >= 1)
    out.chunked = true;
  else
    out.close = true;
  return out;
}

std::string relayed_head_text(const http::ResponseHead& head, RelayFraming framing, const HeadOptions& options) {
  http::Fields fields = head.fields;
  http::remove_hop_by_hop(fields);
  std::string out;
  out.reserve(1024);
  out.append("HTTP/1.1 ").append(std::to_string(head.status)).append(" ").append(head.reason).append("\r\n");
  // Date: RFC 9110 §6.6.1 lets a recipient with a clock add a missing one.
  if (head.status >= 200 && !fields.has("Date")) fields.add("Date", http::format_date(options.now));
  fields.for_each([&](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  });
  if (framing.chunked) out.append("Transfer-Encoding: chunked\r\n");
  HeadOptions tail = options;
  tail.close |= framing.close;
  append_tail(out, tail);
  return out;
}

std::string own_answer(int status, std::string_view text, bool with_body, const HeadOptions& options) {
  std::string body = "nezha-cache: " + std::string(text) + "\n";
  std::string out = "HTTP/1.1 " + std::to_string(status) + " " + std::string(http::reason_of(status)) + "\r\n";
  out += "Date: " + http::format_date(options.now) + "\r\nContent-Type: text/plain; charset=utf-8\r\n";
  out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  append_tail(out, options);
  if (with_body) out += body;
  return out;
}

}  // namespace nezha::cache
