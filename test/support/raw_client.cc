#include "test/support/raw_client.h"

#include <algorithm>
#include <charconv>

#include "nezha/base/text.h"

namespace nezha::test {

using End = ClientAnswer::End;

std::optional<std::string> ClientAnswer::field(std::string_view name) const {
  for (const auto line : split(head, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !iequals(line.substr(0, colon), name)) continue;
    auto text = line.substr(colon + 1);
    if (text.ends_with('\r')) text.remove_suffix(1);
    return std::string(trim(text));
  }
  return std::nullopt;
}

bool RawClient::more(ClientAnswer& answer) {
  switch (socket_.read_more(buffer_)) {
    case Socket::Read::kBytes:
      return true;
    case Socket::Read::kEnd:
      answer.end = End::kTruncated;
      return false;
    case Socket::Read::kReset:
      answer.end = End::kReset;
      return false;
    case Socket::Read::kTimeout:
      answer.end = End::kTimeout;
      return false;
  }
  return false;
}

bool RawClient::take_head(ClientAnswer& answer) {
  for (;;) {
    size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!more(answer)) return false;
    }
    answer.head = buffer_.substr(0, end + 4);
    buffer_.erase(0, end + 4);
    const bool http = answer.head.starts_with("HTTP/1.1 ") && answer.head.size() > 12;
    if (!http || std::from_chars(answer.head.data() + 9, answer.head.data() + 12, answer.status).ec != std::errc{}) {
      answer.end = End::kNonsense;
      return false;
    }
    if (answer.status >= 200) return true;
    answer.interims.push_back(answer.head);
  }
}

bool RawClient::take_line(ClientAnswer& answer, std::string& line) {
  size_t end;
  while ((end = buffer_.find("\r\n")) == std::string::npos) {
    if (!more(answer)) return false;
  }
  line = buffer_.substr(0, end);
  buffer_.erase(0, end + 2);
  return true;
}

void RawClient::take_chunked(ClientAnswer& answer) {
  for (;;) {
    std::string line;
    if (!take_line(answer, line)) return;
    size_t size = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), size, 16);
    if (error != std::errc{} || stop != line.data() + line.size()) {
      answer.end = End::kNonsense;
      return;
    }
    while (buffer_.size() < size + 2) {
      if (!more(answer)) {
        answer.body += buffer_.substr(0, size);
        return;
      }
    }
    answer.body.append(buffer_, 0, size);
    answer.end = buffer_.compare(size, 2, "\r\n") == 0 ? End::kComplete : End::kNonsense;
    buffer_.erase(0, size + 2);
    if (size == 0 || answer.end == End::kNonsense) return;
  }
}

void RawClient::take_body(ClientAnswer& answer, bool to_head) {
  answer.end = End::kComplete;
  if (to_head || answer.status == 204 || answer.status == 304) return;
  if (iequals(answer.value("Transfer-Encoding"), "chunked")) return take_chunked(answer);
  const auto length = answer.field("Content-Length");
  const uint64_t wanted = length ? parse_decimal(*length).value_or(0) : UINT64_MAX;
  while (buffer_.size() < wanted && more(answer)) {
  }
  const size_t size = static_cast<size_t>(std::min<uint64_t>(buffer_.size(), wanted));
  answer.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  if (answer.body.size() == wanted || (!length && answer.end == End::kTruncated)) answer.end = End::kComplete;
}

ClientAnswer RawClient::read_answer(bool to_head) {
  ClientAnswer answer;
  if (take_head(answer)) take_body(answer, to_head);
  return answer;
}

ClientAnswer RawClient::read_head() {
  ClientAnswer answer;
  if (take_head(answer)) answer.end = End::kComplete;
  return answer;
}

std::string RawClient::read_bytes(size_t size) {
  ClientAnswer ignored;
  while (buffer_.size() < size && more(ignored)) {
  }
  std::string out = buffer_.substr(0, size);
  buffer_.erase(0, out.size());
  return out;
}

ClientAnswer RawClient::ask(std::string_view request, bool to_head) {
  send(request);
  return read_answer(to_head);
}

bool RawClient::closed_by_peer() {
  ClientAnswer answer;
  if (!buffer_.empty() || more(answer)) return false;
  return answer.end != End::kTimeout;
}

std::string get(std::string_view target, std::string_view fields, std::string_view method) {
  std::string out;
  out.append(method).append(" ").append(target).append(" HTTP/1.1\r\nHost: data.example\r\n");
  return out.append(fields).append("\r\n");
}

}  // namespace nezha::test
