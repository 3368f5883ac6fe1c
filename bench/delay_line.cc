// bench_delay_line: a long line between clients and one upstream. What is sent arrives later, in order, and no faster
// than the line; a new connection waits for its handshake's round trip before its first byte leaves.
//
//   bench_delay_line --port 80 --upstream 7070 [--delay-us 10000] [--total-bits 0] [--connection-bits 0]
//
// --delay-us is one way. Rates are bits per second and direction, of all connections and of each; 0 is no limit.
// There is no slow start: a connection has its whole window from the first byte. One thread, edge-triggered epoll.
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <deque>
#include <list>
#include <memory>

#include "bench/arguments.h"

namespace nezha::bench {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;
using std::chrono::nanoseconds;

constexpr size_t kPieceBytes = 32 * 1024;
constexpr size_t kWindowBytes = 8 * 1024 * 1024;       // under way in one direction of a connection
constexpr int kTurnPieces = 4;                         // what one direction may take before the others have their turn
constexpr auto kAhead = std::chrono::milliseconds(2);  // waking up late costs no rate

// When the next byte may leave at a given rate.
class Rate {
 public:
  explicit Rate(uint64_t bits_per_second) : ns_per_byte_(bits_per_second ? 8e9 / double(bits_per_second) : 0) {}

  Time opens() const { return free_ - kAhead; }

  // When the last of so many bytes has left.
  Time take(Time now, size_t bytes) {
    free_ = std::max(free_, now) + nanoseconds(static_cast<int64_t>(ns_per_byte_ * double(bytes)));
    return free_;
  }

 private:
  double ns_per_byte_;
  Time free_{};
};

struct Piece {
  std::unique_ptr<char[]> bytes;
  size_t begin = 0, end = 0;
  Time due;
};

struct Direction {
  Direction(int from, int to, Time opens, Rate& shared, uint64_t own_bits)
      : source(from), sink(to), opens_at(opens), line(shared), own(own_bits) {}

  const int source, sink;
  const Time opens_at;
  Rate& line;
  Rate own;
  std::deque<Piece> under_way{};
  size_t under_way_bytes = 0;
  Time end_due{};
  bool readable = false, writable = false, source_ended = false, done = false;
};

struct Pair;
struct End {
  Pair* pair;
  Direction* in;
  Direction* out;
};

struct Pair {
  Pair(int from, int to, Time opens, Rate& up_line, Rate& down_line, uint64_t own_bits)
      : up(from, to, opens, up_line, own_bits), down(to, from, opens, down_line, own_bits) {}
  Pair(const Pair&) = delete;
  ~Pair() {
    ::close(up.source);
    ::close(up.sink);
  }

  Direction up, down;
  End client{this, &up, &down}, upstream{this, &down, &up};
  bool broken = false;
};

struct Options {
  uint16_t port, upstream;
  nanoseconds delay;
  uint64_t total_bits, connection_bits;
};

class Line {
 public:
  explicit Line(const Options& options)
      : options_(options),
        listener_(listen_on(options.port)),
        epoll_(make_epoll()),
        up_(options.total_bits),
        down_(options.total_bits) {
    watch(epoll_, listener_, EPOLLIN, nullptr);
  }

  [[noreturn]] void run() {
    for (;;) {
      wait();
      now_ = Clock::now();
      wake_ = Time::max();
      for (auto pair = pairs_.begin(); pair != pairs_.end();) {
        go_on(pair->up, *pair);
        go_on(pair->down, *pair);
        pair = pair->broken || (pair->up.done && pair->down.done) ? pairs_.erase(pair) : std::next(pair);
      }
      if (pairs_.size() > 1) pairs_.splice(pairs_.end(), pairs_, pairs_.begin());  // each is first in its turn
    }
  }

 private:
  void wait() {
    const auto left = std::max(nanoseconds(0), wake_ == Time::max() ? nanoseconds(0) : wake_ - Clock::now());
    const timespec timeout{left.count() / 1'000'000'000, left.count() % 1'000'000'000};
    epoll_event events[256];
    const int count = ::epoll_pwait2(epoll_, events, 256, wake_ == Time::max() ? nullptr : &timeout, nullptr);
    for (int i = 0; i < count; ++i) {
      if (auto* end = static_cast<End*>(events[i].data.ptr)) {
        if (events[i].events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) end->in->readable = true;
        if (events[i].events & EPOLLOUT) end->out->writable = true;
      } else {
        accept_all();
      }
    }
  }

  void accept_all() {
    for (int fd; (fd = accept_from(listener_)) >= 0;) {
      const int upstream = connect_to(options_.upstream);
      const Time opens = Clock::now() + 2 * options_.delay;
      pairs_.emplace_back(fd, upstream, opens, up_, down_, options_.connection_bits);
      constexpr uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
      watch(epoll_, fd, kEvents, &pairs_.back().client);
      watch(epoll_, upstream, kEvents, &pairs_.back().upstream);
    }
  }

  void go_on(Direction& way, Pair& pair) {
    deliver(way, pair);
    for (int piece = 0; piece < kTurnPieces && may_take(way) && opens(way) <= now_; ++piece) take(way, pair);
    if (may_take(way)) wake_ = std::min(wake_, opens(way));
    if (way.under_way.empty()) {
      if (way.source_ended && !way.done) wake_ = std::min(wake_, way.end_due);
    } else if (way.writable) {
      wake_ = std::min(wake_, way.under_way.front().due);
    }
  }

  static bool may_take(const Direction& way) {
    return way.readable && !way.source_ended && way.under_way_bytes < kWindowBytes;
  }

  static Time opens(const Direction& way) { return std::max({way.opens_at, way.line.opens(), way.own.opens()}); }

  void take(Direction& way, Pair& pair) {
    auto bytes = std::make_unique_for_overwrite<char[]>(kPieceBytes);
    const ssize_t got = ::read(way.source, bytes.get(), kPieceBytes);
    if (got < 0) {
      way.readable = false;
      pair.broken = pair.broken || (errno != EAGAIN && errno != ENOTCONN);
      return;
    }
    const auto size = static_cast<size_t>(got);
    const Time due = std::max(way.line.take(now_, size), way.own.take(now_, size)) + options_.delay;
    if (size == 0) {
      way.source_ended = true;
      way.end_due = due;
      return;
    }
    way.under_way.push_back({std::move(bytes), 0, size, due});
    way.under_way_bytes += size;
  }

  void deliver(Direction& way, Pair& pair) {
    while (way.writable && !way.under_way.empty() && way.under_way.front().due <= now_) {
      Piece& piece = way.under_way.front();
      const ssize_t sent = ::write(way.sink, piece.bytes.get() + piece.begin, piece.end - piece.begin);
      if (sent < 0) {
        way.writable = false;
        pair.broken = pair.broken || (errno != EAGAIN && errno != ENOTCONN);
        return;
      }
      piece.begin += static_cast<size_t>(sent);
      way.under_way_bytes -= static_cast<size_t>(sent);
      if (piece.begin == piece.end) way.under_way.pop_front();
    }
    if (way.source_ended && !way.done && way.under_way.empty() && way.end_due <= now_) {
      way.done = true;
      ::shutdown(way.sink, SHUT_WR);
    }
  }

  const Options options_;
  const int listener_, epoll_;
  Rate up_, down_;
  std::list<Pair> pairs_{};
  Time now_{}, wake_ = Time::max();
};

}  // namespace
}  // namespace nezha::bench

int main(int argc, char** argv) {
  using namespace nezha::bench;
  const Arguments arguments(argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds; by default the kernel may wake it 50 microseconds late
  Line line({static_cast<uint16_t>(arguments.number("--port", 8003)),
             static_cast<uint16_t>(arguments.number("--upstream", 8000)),
             std::chrono::microseconds(arguments.number("--delay-us", 10'000)), arguments.number("--total-bits", 0),
             arguments.number("--connection-bits", 0)});
  line.run();
}
