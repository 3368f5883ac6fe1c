#include "test/support/scripted_origin.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>

#include "nezha/base/text.h"
#include "test/support/event.h"

namespace nezha::test {
namespace {

template <class Visit>
void for_each_field(std::string_view head, Visit visit) {
  for (auto line : split(head, '\n')) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) visit(line.substr(0, colon), line.substr(colon + 1));
  }
}

}  // namespace

std::string RecordedRequest::target() const {
  const size_t begin = head.find(' ') + 1;
  return head.substr(begin, head.find(' ', begin) - begin);
}

std::optional<std::string> RecordedRequest::field(std::string_view name) const {
  std::optional<std::string> found;
  const auto lines = std::string_view(head).substr(head.find("\r\n") + 2);
  for_each_field(lines, [&](std::string_view field, std::string_view value) {
    if (!found && iequals(field, name)) found = std::string(trim(value));
  });
  return found;
}

size_t RecordedRequest::count(std::string_view name) const {
  size_t count = 0;
  const auto lines = std::string_view(head).substr(head.find("\r\n") + 2);
  for_each_field(lines, [&](std::string_view field, std::string_view) { count += iequals(field, name); });
  return count;
}

bool OriginConnection::more() { return socket_.read_more(buffer_) == Socket::Read::kBytes; }

std::optional<RecordedRequest> OriginConnection::read_head() {
  size_t end;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!more()) return std::nullopt;
  }
  RecordedRequest request;
  request.head = buffer_.substr(0, end + 4);
  request.connection = number_;
  buffer_.erase(0, end + 4);
  return request;
}

bool OriginConnection::read_body(RecordedRequest& request) {
  if (const auto length = request.field("Content-Length")) {
    const size_t size = static_cast<size_t>(parse_decimal(*length).value_or(0));
    while (buffer_.size() < size) {
      if (!more()) return false;
    }
    request.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return true;
  }
  if (!request.has("Transfer-Encoding")) return true;
  for (;;) {
    size_t line;
    while ((line = buffer_.find("\r\n")) == std::string::npos) {
      if (!more()) return false;
    }
    size_t size = 0;
    std::from_chars(buffer_.data(), buffer_.data() + line, size, 16);
    while (buffer_.size() < line + 2 + size + 2) {
      if (!more()) return false;
    }
    request.body.append(buffer_, line + 2, size);
    buffer_.erase(0, line + 2 + size + 2);
    if (size == 0) return true;
  }
}

bool OriginConnection::read_some(std::string& into, size_t bytes_max) {
  if (buffer_.empty() && !more()) return false;
  const size_t size = std::min(bytes_max, buffer_.size());
  into.append(buffer_, 0, size);
  buffer_.erase(0, size);
  return true;
}

ScriptedOrigin::ScriptedOrigin(Handler handler, bool read_bodies)
    : listening_(listen_loopback()), read_bodies_(read_bodies), handler_(std::move(handler)) {
  acceptor_ = std::thread([this] { accept_loop(); });
}

ScriptedOrigin::~ScriptedOrigin() {
  stopping_ = true;
  listening_.socket.shut();
  acceptor_.join();
  drop_connections();
  for (auto& served : served_) served.thread.join();
}

void ScriptedOrigin::accept_loop() {
  for (;;) {
    Socket accepted(::accept4(listening_.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    if (stopping_ || !accepted.open()) return;
    std::lock_guard lock(mutex_);
    served_.remove_if([](Served& served) {
      if (served.ended) served.thread.join();
      return served.ended;
    });
    Served& served = served_.emplace_back(std::move(accepted), accepted_++);
    served.thread = std::thread([this, &served] { serve(served); });
  }
}

void ScriptedOrigin::serve(Served& served) {
  OriginConnection& connection = served.connection;
  while (!connection.over()) {
    auto request = connection.read_head();
    if (!request) break;
    if (read_bodies_ && !connection.read_body(*request)) break;
    Handler handler;
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(*request);
      handler = handler_;
      changed_.notify_all();
    }
    handler(connection, *request);
  }
  std::lock_guard lock(mutex_);
  connection.close();
  served.ended = true;
}

void ScriptedOrigin::set_handler(Handler handler) {
  std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
}

std::vector<RecordedRequest> ScriptedOrigin::requests() const {
  std::lock_guard lock(mutex_);
  return requests_;
}

void ScriptedOrigin::forget_requests() {
  std::lock_guard lock(mutex_);
  requests_.clear();
}

size_t ScriptedOrigin::count_if(const std::function<bool(const RecordedRequest&)>& wanted) const {
  const auto all = requests();
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), wanted));
}

bool ScriptedOrigin::wait_for_count(size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, kWatchdog, [&] { return requests_.size() >= count; });
}

void ScriptedOrigin::drop_connections() {
  std::lock_guard lock(mutex_);
  for (auto& served : served_) {
    if (served.connection.socket().open()) served.connection.socket().shut();
  }
}

std::string response(int status, std::string_view fields, std::string_view body) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " Word\r\n";
  out.append(fields).append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
  return out.append(body);
}

std::string chunks(std::string_view body, size_t chunk_bytes) {
  std::string out;
  while (!body.empty()) {
    const auto piece = body.substr(0, chunk_bytes);
    char line[32];
    const auto end = std::to_chars(line, line + sizeof line, piece.size(), 16).ptr;
    out.append(line, end).append("\r\n").append(piece).append("\r\n");
    body.remove_prefix(piece.size());
  }
  return out.append("0\r\n\r\n");
}

std::string chunked_response(std::string_view fields, std::string_view body, size_t chunk_bytes) {
  std::string out = "HTTP/1.1 200 OK\r\n";
  return out.append(fields).append("Transfer-Encoding: chunked\r\n\r\n").append(chunks(body, chunk_bytes));
}

std::string pattern_bytes(size_t size, uint64_t seed) {
  std::string out(size, '\0');
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < size; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    out[i] = static_cast<char>(state >> 56);
  }
  return out;
}

}  // namespace nezha::test
