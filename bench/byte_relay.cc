// bench_byte_relay: passes bytes between clients and one upstream, reading nothing of them. It is the floor for
// anything that stands between a client and an origin and touches the bytes: one read and one write per piece.
//
//   bench_byte_relay --port 8001 --upstream 8000 [--buffer-kib 256]
//
// One thread, edge-triggered epoll, one buffer per direction.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <deque>
#include <memory>
#include <utility>

#include "bench/arguments.h"

namespace nezha::bench {
namespace {

constexpr int kTurnPieces = 16;  // what one direction may pass on before the others have their turn

// One direction of a connection. Its buffer is empty, or it waits for the sink to take the rest.
struct Direction {
  int source = -1, sink = -1;
  std::unique_ptr<char[]> buffer;
  size_t begin = 0, end = 0;
  bool ended = false;
};

struct Pair {
  ~Pair() {
    ::close(to_upstream.source);
    ::close(to_upstream.sink);
  }
  Direction to_upstream, to_client;
  bool in_line = false, broken = false;
};

class Relay {
 public:
  Relay(int listener, uint16_t upstream, size_t buffer_bytes)
      : listener_(listener), upstream_(upstream), buffer_bytes_(buffer_bytes), epoll_(make_epoll()) {
    watch(epoll_, listener_, EPOLLIN, nullptr);
  }

  [[noreturn]] void run() {
    for (;;) {
      epoll_event events[64];
      const int count = ::epoll_wait(epoll_, events, 64, line_.empty() ? -1 : 0);
      for (int i = 0; i < count; ++i) {
        if (events[i].data.ptr)
          get_in_line(static_cast<Pair*>(events[i].data.ptr));
        else
          accept_all();
      }
      for (size_t waiting = line_.size(); waiting > 0; --waiting) {
        Pair* pair = line_.front();
        line_.pop_front();
        pair->in_line = false;
        go_on(pair);
      }
    }
  }

 private:
  void accept_all() {
    for (int fd; (fd = accept_from(listener_)) >= 0;) {
      auto* pair = new Pair;
      const int upstream = connect_to(upstream_);
      pair->to_upstream = {fd, upstream, std::make_unique<char[]>(buffer_bytes_)};
      pair->to_client = {upstream, fd, std::make_unique<char[]>(buffer_bytes_)};
      for (const int end : {fd, upstream}) watch(epoll_, end, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, pair);
    }
  }

  void get_in_line(Pair* pair) {
    if (std::exchange(pair->in_line, true)) return;
    line_.push_back(pair);
  }

  void go_on(Pair* pair) {
    const bool more_up = pump(pair->to_upstream, *pair);
    const bool more_down = pump(pair->to_client, *pair);
    if (pair->broken || (pair->to_upstream.ended && pair->to_client.ended)) {
      delete pair;
    } else if (more_up || more_down) {
      get_in_line(pair);
    }
  }

  // True when it could go on but must let others have their turn.
  bool pump(Direction& direction, Pair& pair) {
    for (int piece = 0; piece < kTurnPieces && !direction.ended; ++piece) {
      if (direction.begin == direction.end) {
        const ssize_t got = ::read(direction.source, direction.buffer.get(), buffer_bytes_);
        if (got < 0) {
          pair.broken = errno != EAGAIN && errno != ENOTCONN;
          return false;
        }
        direction.begin = 0;
        direction.end = static_cast<size_t>(got);
        if (got == 0) {
          direction.ended = true;
          ::shutdown(direction.sink, SHUT_WR);
          return false;
        }
      }
      const ssize_t sent =
          ::write(direction.sink, direction.buffer.get() + direction.begin, direction.end - direction.begin);
      if (sent < 0) {
        pair.broken = errno != EAGAIN && errno != ENOTCONN;
        return false;
      }
      direction.begin += static_cast<size_t>(sent);
    }
    return !direction.ended;
  }

  const int listener_;
  const uint16_t upstream_;
  const size_t buffer_bytes_;
  const int epoll_;
  std::deque<Pair*> line_;
};

}  // namespace
}  // namespace nezha::bench

int main(int argc, char** argv) {
  using namespace nezha::bench;
  const Arguments arguments(argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  Relay relay(listen_on(static_cast<uint16_t>(arguments.number("--port", 8001))),
              static_cast<uint16_t>(arguments.number("--upstream", 8000)),
              arguments.number("--buffer-kib", 256) * 1024);
  relay.run();
}
