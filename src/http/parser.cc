// Head parsing on Beast's basic_parser; the framing rules are decided here, from the fields themselves.
#include "nezha/http/parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"

namespace nezha::http {
namespace {

namespace beast = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

std::string_view view(string_view text) { return {text.data(), text.size()}; }

HeadStep bad(int status, std::string reason) {
  HeadStep step;
  step.kind = HeadStep::Kind::kBad;
  step.status = status;
  step.reason = std::move(reason);
  return step;
}

// Collects a head; the body is never given to Beast.
template <bool isRequest, class Head>
class Collector final : public beast::basic_parser<isRequest> {
 public:
  explicit Collector(Head& head) : head_(head) {
    this->header_limit(limits::kHeadBytesMax);
    this->body_limit(boost::none);
    head_.fields.clear();
  }
  bool too_many_fields = false;

 private:
  void on_request_impl(beast::verb, string_view method, string_view target, int version, error_code&) override {
    if constexpr (isRequest) {
      head_.method.assign(method.data(), method.size());
      head_.target.assign(target.data(), target.size());
      head_.minor_version = version - 10;
    }
  }
  void on_response_impl(int code, string_view reason, int version, error_code&) override {
    if constexpr (!isRequest) {
      head_.status = code;
      head_.reason.assign(reason.data(), reason.size());
      head_.minor_version = version - 10;
    }
  }
  void on_field_impl(beast::field, string_view name, string_view value, error_code& ec) override {
    if (head_.fields.size() >= limits::kHeadFieldsMax) {
      too_many_fields = true;
      ec = beast::error::header_limit;
      return;
    }
    head_.fields.add(view(name), view(value));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const&, error_code&) override {}
  std::size_t on_body_impl(string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}

  Head& head_;
};

// RFC 9112 §6: nothing when the fields contradict each other.
struct FramingFields {
  bool chunked = false;
  std::optional<uint64_t> length_bytes;
  int bad_status = 0;
  const char* bad_reason = "";
};

FramingFields framing_fields(const Fields& fields, int minor_version) {
  FramingFields out;
  const auto reject = [&](int status, const char* reason) {
    out.bad_status = status;
    out.bad_reason = reason;
    return out;
  };
  if (fields.has("Transfer-Encoding")) {
    const auto codings = list_members(fields, "Transfer-Encoding");
    if (fields.has("Content-Length")) return reject(400, "both Content-Length and Transfer-Encoding");
    if (minor_version == 0) return reject(400, "Transfer-Encoding in HTTP/1.0");
    if (codings.size() != 1 || !iequals(codings[0], "chunked")) {
      const bool chunked_last = !codings.empty() && iequals(codings.back(), "chunked");
      return reject(chunked_last ? 501 : 400, "a transfer coding other than chunked");
    }
    out.chunked = true;
    return out;
  }
  bool bad_length = false;
  fields.for_each([&](std::string_view name, std::string_view value) {
    if (!iequals(name, "Content-Length")) return;
    // "5, 5" and repeated equal lines are the only lists allowed (RFC 9112 §6.3 item 5); an empty list is not.
    for (const auto member : split(value, ',')) {
      const auto length = parse_decimal(trim(member));
      if (!length || (out.length_bytes && *out.length_bytes != *length))
        bad_length = true;
      else
        out.length_bytes = length;
    }
  });
  if (bad_length) return reject(400, "an invalid Content-Length");
  return out;
}

// A list of equal lengths, or leading zeros, may mean something else to the next reader: one plain number goes on.
void normalise_length(Fields& fields, const FramingFields& framing) {
  if (!framing.length_bytes) return;
  const std::string plain = std::to_string(*framing.length_bytes);
  if (fields.joined("Content-Length") != plain) fields.set("Content-Length", plain);
}

bool keep_alive_of(const Fields& fields, int minor_version) {
  bool close = minor_version == 0;
  for (const auto member : list_members(fields, "Connection")) {
    if (iequals(member, "close")) return false;
    if (iequals(member, "keep-alive")) close = false;
  }
  return !close;
}

HeadStep finish_request(RequestHead& head, size_t consumed_bytes) {
  const auto framing = framing_fields(head.fields, head.minor_version);
  if (framing.bad_status != 0) return bad(framing.bad_status, framing.bad_reason);
  normalise_length(head.fields, framing);
  const size_t hosts = head.fields.count("Host");
  if (hosts > 1 || (hosts == 0 && head.minor_version >= 1)) return bad(400, "not exactly one Host field");
  head.keep_alive = keep_alive_of(head.fields, head.minor_version);
  head.framing = {};
  if (framing.chunked)
    head.framing.kind = Framing::Kind::kChunked;
  else if (framing.length_bytes)
    head.framing = {Framing::Kind::kLength, *framing.length_bytes};
  HeadStep step;
  step.kind = HeadStep::Kind::kDone;
  step.consumed_bytes = consumed_bytes;
  return step;
}

HeadStep finish_response(ResponseHead& head, bool to_head, size_t consumed_bytes) {
  if (head.status < 100) return bad(502, "a status below 100");
  const auto framing = framing_fields(head.fields, head.minor_version);
  if (framing.bad_status != 0) return bad(502, framing.bad_reason);
  normalise_length(head.fields, framing);
  head.keep_alive = keep_alive_of(head.fields, head.minor_version);
  head.framing = {};
  const bool bodyless = to_head || head.status < 200 || head.status == 204 || head.status == 304;
  if (!bodyless) {
    if (framing.chunked)
      head.framing.kind = Framing::Kind::kChunked;
    else if (framing.length_bytes)
      head.framing = {Framing::Kind::kLength, *framing.length_bytes};
    else
      head.framing.kind = Framing::Kind::kUntilClose;
  }
  if (head.framing.kind == Framing::Kind::kUntilClose) head.keep_alive = false;
  HeadStep step;
  step.kind = HeadStep::Kind::kDone;
  step.consumed_bytes = consumed_bytes;
  return step;
}

bool has_bare_lf(std::string_view bytes) {
  for (size_t at = bytes.find('\n'); at != std::string_view::npos; at = bytes.find('\n', at + 1)) {
    if (at == 0 || bytes[at - 1] != '\r') return true;
  }
  return false;
}

// RFC 9112 §5.2 wants it refused or repaired in a request; Beast would repair it, and the signature with it.
bool has_folded_field(std::string_view bytes) {
  const auto head = bytes.substr(0, bytes.find("\r\n\r\n"));
  return head.find("\r\n ") != std::string_view::npos || head.find("\r\n\t") != std::string_view::npos;
}

// Whether the first line ends in another "HTTP/" DIGIT "." DIGIT (RFC 9112 §2.3), and not in nonsense.
bool names_another_version(std::string_view bytes) {
  auto text = bytes.substr(0, bytes.find("\r\n"));
  text.remove_prefix(text.rfind(' ') + 1);
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text == "HTTP/1.0" || text == "HTTP/1.1") return false;
  return text.size() == 8 && text.starts_with("HTTP/") && digit(text[5]) && text[6] == '.' && digit(text[7]);
}

// Runs one head through Beast. kDone means: fields collected, framing still to be decided.
template <bool isRequest, class Head>
HeadStep run(std::string_view bytes, Head& into) {
  Collector<isRequest, Head> collector(into);
  if (!isRequest) collector.skip(true);  // our own framing rules decide about the body
  HeadStep step;
  // A cheap look first: a head that comes byte by byte must not be parsed from its start each time.
  const size_t end = bytes.find("\r\n\r\n");
  if (has_bare_lf(bytes.substr(0, end))) return bad(400, "a line that ends without CR");
  if (end == std::string_view::npos) {
    return bytes.size() >= limits::kHeadBytesMax ? bad(431, "the head is larger than the limit") : step;
  }
  error_code ec;
  const size_t consumed = collector.put(boost::asio::buffer(bytes.data(), bytes.size()), ec);
  if (ec == beast::error::need_more) {
    if (bytes.size() >= limits::kHeadBytesMax) return bad(431, "the head is larger than the limit");
    return step;
  }
  // Errors that belong to the body (e.g. its limits) come after the head and are not ours.
  if (ec && !collector.is_header_done()) {
    if (ec == beast::error::header_limit || collector.too_many_fields)
      return bad(431, "the head is larger than the limit");
    if (ec == beast::error::bad_version && names_another_version(bytes)) {
      return bad(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    }
    return bad(400, ec.message());
  }
  step.kind = HeadStep::Kind::kDone;
  step.consumed_bytes = consumed;
  return step;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

ChunkedDecoder::Step step_of(ChunkedDecoder::Step::Kind kind, size_t consumed_bytes = 0, std::string_view data = {}) {
  return {kind, consumed_bytes, data};
}

// Size of a line with its CRLF; 0 when it is not complete yet; npos for a bare CR or LF or a control character.
size_t line_size(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    if (c == '\r') {
      if (i + 1 == bytes.size()) return 0;
      return bytes[i + 1] == '\n' ? i + 2 : std::string_view::npos;
    }
    if (c == 0x7f || (c < 0x20 && c != '\t')) return std::string_view::npos;
  }
  return 0;
}

}  // namespace

HeadStep parse_request_head(std::string_view bytes, RequestHead& into) {
  // RFC 9112 §2.2: a server ignores at least one empty line before the request line.
  size_t skipped = 0;
  while (skipped < 4 && bytes.substr(0, 2) == "\r\n") bytes.remove_prefix(2), skipped += 2;
  if (has_folded_field(bytes)) return bad(400, "a field continued on the next line");
  HeadStep step = run<true>(bytes, into);
  if (step.kind != HeadStep::Kind::kDone) return step;
  return finish_request(into, step.consumed_bytes + skipped);
}

HeadStep parse_response_head(std::string_view bytes, bool to_head, ResponseHead& into) {
  // "HTTP/1.1 200" without the space that RFC 9112 §4 asks for before an empty reason: several servers send that.
  constexpr size_t kBareLineBytes = 12;
  if (bytes.size() > kBareLineBytes && bytes.starts_with("HTTP/") && bytes.substr(kBareLineBytes, 2) == "\r\n") {
    std::string repaired(bytes);
    repaired.insert(kBareLineBytes, " ");
    HeadStep step = run<false>(repaired, into);
    if (step.kind != HeadStep::Kind::kDone) return step;
    return finish_response(into, to_head, step.consumed_bytes - 1);
  }
  HeadStep step = run<false>(bytes, into);
  if (step.kind != HeadStep::Kind::kDone) return step;
  return finish_response(into, to_head, step.consumed_bytes);
}

ChunkedDecoder::Step ChunkedDecoder::decode(std::string_view bytes, size_t data_bytes_max) {
  using Kind = Step::Kind;
  switch (state_) {
    case State::kSize:
      return decode_size(bytes);
    case State::kData: {
      if (bytes.empty()) return step_of(Kind::kNeedMore);
      const size_t take = static_cast<size_t>(std::min<uint64_t>(left_bytes_, std::min(bytes.size(), data_bytes_max)));
      left_bytes_ -= take;
      if (left_bytes_ == 0) state_ = State::kDataEnd;
      return step_of(Kind::kData, take, bytes.substr(0, take));
    }
    case State::kDataEnd:
      if (bytes.size() < 2) {
        return step_of(bytes.empty() || bytes[0] == '\r' ? Kind::kNeedMore : Kind::kBad);
      }
      if (bytes.substr(0, 2) != "\r\n") return step_of(Kind::kBad);
      state_ = State::kSize;
      return step_of(Kind::kNeedMore, 2);
    case State::kTrailer:
      return decode_trailer(bytes);
    case State::kEnd:
      return step_of(Kind::kEnd);
  }
  return step_of(Kind::kBad);
}

ChunkedDecoder::Step ChunkedDecoder::decode_size(std::string_view bytes) {
  using Kind = Step::Kind;
  const size_t size = line_size(bytes);
  if (size == std::string_view::npos) return step_of(Kind::kBad);
  if (size == 0) return step_of(bytes.size() >= limits::kChunkLineBytesMax ? Kind::kBad : Kind::kNeedMore);
  if (size > limits::kChunkLineBytesMax) return step_of(Kind::kBad);
  uint64_t value = 0;
  size_t digits = 0;
  for (; digits < size && hex_value(bytes[digits]) >= 0; ++digits) {
    if (digits == 15) return step_of(Kind::kBad);  // 2^60 bytes and more
    value = value * 16 + static_cast<uint64_t>(hex_value(bytes[digits]));
  }
  if (digits == 0) return step_of(Kind::kBad);
  const auto rest = trim(bytes.substr(digits, size - 2 - digits));  // extensions are allowed and dropped
  if (!rest.empty() && rest[0] != ';') return step_of(Kind::kBad);
  if (rest.empty() && size - 2 != digits) return step_of(Kind::kBad);  // white space alone
  left_bytes_ = value;
  state_ = value == 0 ? State::kTrailer : State::kData;
  return step_of(Kind::kNeedMore, size);
}

ChunkedDecoder::Step ChunkedDecoder::decode_trailer(std::string_view bytes) {
  using Kind = Step::Kind;
  const size_t size = line_size(bytes);
  if (size == std::string_view::npos || trailer_bytes_ + bytes.size() > 2 * limits::kHeadBytesMax)
    return step_of(Kind::kBad);
  if (size == 0) return step_of(bytes.size() >= limits::kHeadBytesMax ? Kind::kBad : Kind::kNeedMore);
  trailer_bytes_ += size;
  if (trailer_bytes_ > limits::kHeadBytesMax) return step_of(Kind::kBad);
  if (size == 2) {
    state_ = State::kEnd;
    return step_of(Kind::kEnd, size);
  }
  return step_of(Kind::kNeedMore, size);
}

}  // namespace nezha::http
