// bench_origin: an HTTP server that generates objects of any size by name, as fast as one thread can write.
//
//   bench_origin --port 8000
//
// GET and HEAD of /o/SIZE/NAME, one Range, If-None-Match; strong ETag, Last-Modified, Cache-Control: max-age. It is
// steered while it runs: GET /control/limit?total=125000000&connection=0 sets token buckets in bytes per second (0: no
// limit) and GET /control/count answers {"requests": N, "bytes": N}, which counts since the last such request.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <deque>

#include "bench/arguments.h"
#include "bench/objects.h"
#include "bench/request_head.h"

namespace nezha::bench {
namespace {

using Steady = std::chrono::steady_clock;

constexpr uint64_t kTurnBytes = 1024 * 1024;  // what one connection may send before the others have their turn
constexpr double kBurstSeconds = 0.004;

// Bytes that may be sent now, filled at a rate; without a rate it is never empty.
class Bucket {
 public:
  void set_rate(double bytes_per_second) {
    rate_ = bytes_per_second;
    tokens_ = 0;
    filled_ = Steady::now();
  }
  uint64_t available() {
    if (rate_ == 0) return kTurnBytes;
    const auto now = Steady::now();
    tokens_ += rate_ * std::chrono::duration<double>(now - filled_).count();
    tokens_ = std::min(tokens_, rate_ * kBurstSeconds);
    filled_ = now;
    return tokens_ < 1 ? 0 : static_cast<uint64_t>(tokens_);
  }
  void take(uint64_t bytes) {
    if (rate_ != 0) tokens_ -= static_cast<double>(bytes);
  }

 private:
  double rate_ = 0, tokens_ = 0;
  Steady::time_point filled_ = Steady::now();
};

struct Connection {
  explicit Connection(int descriptor) : fd(descriptor) {}
  ~Connection() { ::close(fd); }
  const int fd;
  std::string received, head;
  Object object;
  uint64_t position = 0, end = 0;  // of the body's part that is still to be sent
  Bucket bucket;
  bool in_line = false;
};

enum class Turn { kBlocked, kYields, kThrottled, kClosed };

class Origin {
 public:
  explicit Origin(int listener) : listener_(listener), epoll_(make_epoll()) {
    watch(epoll_, listener_, EPOLLIN, nullptr);
  }

  [[noreturn]] void run() {
    for (;;) {
      epoll_event events[256];
      const int timeout_ms = line_.empty() ? -1 : throttled_ ? 1 : 0;
      const int count = ::epoll_wait(epoll_, events, 256, timeout_ms);
      for (int i = 0; i < count; ++i) {
        if (events[i].data.ptr)
          go_on(static_cast<Connection*>(events[i].data.ptr));
        else
          accept_all();
      }
      throttled_ = true;  // unless one of the line only yields
      for (size_t waiting = line_.size(); waiting > 0; --waiting) {
        Connection* connection = line_.front();
        line_.pop_front();
        connection->in_line = false;
        go_on(connection);
      }
    }
  }

 private:
  void accept_all() {
    for (int fd; (fd = accept_from(listener_)) >= 0;) {
      auto* connection = new Connection(fd);
      connection->bucket.set_rate(connection_rate_);
      watch(epoll_, fd, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, connection);
    }
  }

  void go_on(Connection* connection) {
    if (connection->in_line) return;
    const Turn turn = proceed(*connection);
    if (turn == Turn::kClosed) {
      delete connection;
    } else if (turn != Turn::kBlocked) {
      connection->in_line = true;
      line_.push_back(connection);
      if (turn == Turn::kYields) throttled_ = false;
    }
  }

  Turn proceed(Connection& connection) {
    uint64_t left_of_turn = kTurnBytes;
    for (;;) {
      while (!connection.head.empty() || connection.position < connection.end) {
        if (left_of_turn == 0) return Turn::kYields;
        const uint64_t allowed = std::min({left_of_turn, total_.available(), connection.bucket.available()});
        if (allowed == 0) return Turn::kThrottled;
        const ssize_t sent = send_some(connection, allowed);
        if (sent < 0) return errno == EAGAIN ? Turn::kBlocked : Turn::kClosed;
        total_.take(static_cast<uint64_t>(sent));
        connection.bucket.take(static_cast<uint64_t>(sent));
        left_of_turn -= static_cast<uint64_t>(sent);
      }
      const size_t size = head_size(connection.received);
      if (size > 0) {
        answer(connection, std::string_view(connection.received).substr(0, size));
        connection.received.erase(0, size);
        continue;
      }
      char buffer[16 * 1024];
      const ssize_t got = ::read(connection.fd, buffer, sizeof buffer);
      if (got <= 0) return got < 0 && errno == EAGAIN ? Turn::kBlocked : Turn::kClosed;
      connection.received.append(buffer, static_cast<size_t>(got));
    }
  }

  // Head and body in one call; the head is not counted against `allowed`. Returns the body bytes sent, or -1.
  ssize_t send_some(Connection& connection, uint64_t allowed) {
    const uint64_t body_max = std::min(allowed, connection.end - connection.position);
    const std::string_view body = bytes_at(connection.object, connection.position, body_max);
    iovec parts[2] = {{connection.head.data(), connection.head.size()}, {const_cast<char*>(body.data()), body.size()}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const ssize_t sent = ::sendmsg(connection.fd, &message, MSG_NOSIGNAL);
    if (sent < 0) return -1;
    const size_t of_head = std::min(static_cast<size_t>(sent), connection.head.size());
    connection.head.erase(0, of_head);
    const uint64_t of_body = static_cast<uint64_t>(sent) - of_head;
    connection.position += of_body;
    bytes_ += of_body;
    return static_cast<ssize_t>(of_body);
  }

  void answer(Connection& connection, std::string_view head) {
    const std::string_view path = path_of(head);
    if (path.starts_with("/control/")) return control(connection, path);
    ++requests_;
    const auto object = object_of(path);
    if (!object) return text(connection, "404 Not Found", "no such object\n");
    connection.object = *object;
    connection.position = 0;
    connection.end = object->size_bytes;
    std::string status = "200 OK", part;
    if (field_of(head, "if-none-match:") == etag_of(*object)) {
      status = "304 Not Modified";
      connection.end = 0;
    } else if (const std::string_view range = field_of(head, "range:"); !range.empty() && choose(connection, range)) {
      status = "206 Partial Content";
      part = "Content-Range: bytes " + std::to_string(connection.position) + "-" + std::to_string(connection.end - 1) +
             "/" + std::to_string(object->size_bytes) + "\r\n";
    }
    const uint64_t length = connection.end - connection.position;
    connection.head =
        "HTTP/1.1 " + status + "\r\nServer: bench-origin\r\nContent-Type: application/octet-stream\r\n" +
        "Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nCache-Control: max-age=864000\r\nETag: " + etag_of(*object) +
        "\r\nAccept-Ranges: bytes\r\n" + part +
        (status[0] == '3' ? "" : "Content-Length: " + std::to_string(length) + "\r\n") + "\r\n";
    if (method_of(head) == "HEAD") connection.end = connection.position;
  }

  // "bytes=A-B", "bytes=A-" and "bytes=-N"; false, and the whole object, for anything else.
  static bool choose(Connection& connection, std::string_view range) {
    uint64_t first = 0, last = connection.end - 1;
    const size_t dash = range.find('-');
    if (!range.starts_with("bytes=") || dash == std::string_view::npos || connection.end == 0) return false;
    const std::string_view from = range.substr(6, dash - 6), to = range.substr(dash + 1);
    const bool has_to = std::from_chars(to.data(), to.data() + to.size(), last).ec == std::errc();
    if (from.empty()) {
      if (!has_to) return false;
      first = connection.end - std::min(last, connection.end);
      last = connection.end - 1;
    } else {
      std::from_chars(from.data(), from.data() + from.size(), first);
    }
    last = std::min(last, connection.end - 1);
    if (first > last) return false;
    connection.position = first;
    connection.end = last + 1;
    return true;
  }

  void control(Connection& connection, std::string_view path) {
    if (path.starts_with("/control/limit")) {
      total_.set_rate(static_cast<double>(parameter(path, "total=")));
      connection_rate_ = static_cast<double>(parameter(path, "connection="));
      return text(connection, "200 OK", "{}\n");
    }
    const std::string counts =
        "{\"requests\": " + std::to_string(requests_) + ", \"bytes\": " + std::to_string(bytes_) + "}\n";
    requests_ = bytes_ = 0;
    text(connection, "200 OK", counts);
  }

  static uint64_t parameter(std::string_view path, std::string_view name) {
    uint64_t value = 0;
    const size_t at = path.find(name);
    if (at != std::string_view::npos) std::from_chars(path.data() + at + name.size(), path.data() + path.size(), value);
    return value;
  }

  static void text(Connection& connection, const std::string& status, const std::string& body) {
    connection.position = connection.end = 0;
    connection.head = "HTTP/1.1 " + status +
                      "\r\nCache-Control: no-store\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                      body;
  }

  const int listener_, epoll_;
  std::deque<Connection*> line_;  // those that could send but must wait for their turn or for tokens
  bool throttled_ = true;         // every one of the line waits for tokens
  Bucket total_;
  double connection_rate_ = 0;
  uint64_t requests_ = 0, bytes_ = 0;
};

}  // namespace
}  // namespace nezha::bench

int main(int argc, char** argv) {
  using namespace nezha::bench;
  const Arguments arguments(argc, argv);
  bytes_at({1, 0}, 0, 1);  // makes the bytes now, not in the first answer
  Origin(listen_on(static_cast<uint16_t>(arguments.number("--port", 8000)))).run();
}
