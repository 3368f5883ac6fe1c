// bench_client: HTTP GETs over keep-alive connections, with exact percentiles; for what wrk cannot measure.
//
//   bench_client --port 80 --path /o/4096/# --objects 1000 --connections 8 --seconds 3 --rate 5000
//   bench_client --port 80 --path /o/268435456/x --connections 100 --requests 100 --verify 1
//
// `#` in the path is the object's number: 0, 1, 2 … --objects-1 and again, or by chance with --order random. --first
// is added to it. It ends after --requests or --seconds, or on SIGTERM. With --rate, request number i is due at i/rate
// seconds and its latency counts from then, also when no connection is free: a server that stalls cannot hide the
// requests it delays. Prints one line of JSON: requests, errors, bytes, seconds, and in microseconds p50, p90, p95,
// p99, p999, max.
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>

#include "bench/arguments.h"
#include "bench/objects.h"
#include "bench/request_head.h"

namespace nezha::bench {
namespace {

using Steady = std::chrono::steady_clock;

volatile std::sig_atomic_t asked_to_stop = 0;

constexpr size_t kReadBytes = 256 * 1024;
constexpr std::chrono::seconds kPatience{60};

struct Plan {
  explicit Plan(const Arguments& arguments)
      : port(static_cast<uint16_t>(arguments.number("--port", 80))),
        host(arguments.text("--host", "bench.test")),
        path(arguments.text("--path", "/o/4096/x")),
        first(arguments.number("--first", 0)),
        objects(arguments.number("--objects", 1)),
        at_random(arguments.text("--order", "in-turn") == "random"),
        connections(arguments.number("--connections", 1)),
        requests(arguments.number("--requests", UINT64_MAX)),
        seconds(static_cast<double>(arguments.number("--seconds", 86'400))),
        rate(static_cast<double>(arguments.number("--rate", 0))),
        verify(arguments.number("--verify", 0) != 0) {}
  const uint16_t port;
  const std::string host, path;
  const uint64_t first, objects;
  const bool at_random;
  const uint64_t connections, requests;
  const double seconds, rate;
  const bool verify;
};

struct Connection {
  int fd = -1;
  bool busy = false;
  std::string head;  // of the answer, until it is complete
  bool in_body = false;
  Object object;
  uint64_t position = 0, size_bytes = 0;
  Steady::time_point due;
};

class Client {
 public:
  explicit Client(const Plan& plan) : plan_(plan), epoll_(make_epoll()), buffer_(std::make_unique<char[]>(kReadBytes)) {
    connections_.resize(plan.connections);
    for (auto& connection : connections_) open(connection);
  }

  void run() {
    begin_ = heard_ = Steady::now();
    for (;;) {
      const auto now = Steady::now();
      if (asked_to_stop || now - begin_ >= std::chrono::duration<double>(plan_.seconds)) stopping_ = true;
      start_due(now);
      if (idle_.size() == connections_.size() && (stopping_ || started_ == plan_.requests)) break;
      if (now - heard_ > kPatience)
        die("no byte in a minute, " + std::to_string(latencies_us_.size()) + " answers so far");
      epoll_event events[256];
      const timespec patience = until_next_due();
      const int count = ::epoll_pwait2(epoll_, events, 256, &patience, nullptr);
      for (int i = 0; i < count; ++i) receive(*static_cast<Connection*>(events[i].data.ptr));
    }
    seconds_ = std::chrono::duration<double>(Steady::now() - begin_).count();
  }

  void print() {
    std::sort(latencies_us_.begin(), latencies_us_.end());
    std::printf("{\"requests\": %zu, \"errors\": %llu, \"bytes\": %llu, \"seconds\": %.6f", latencies_us_.size(),
                static_cast<unsigned long long>(errors_), static_cast<unsigned long long>(bytes_), seconds_);
    const std::pair<const char*, double> wanted[] = {{"p50", 0.5},  {"p90", 0.9},    {"p95", 0.95},
                                                     {"p99", 0.99}, {"p999", 0.999}, {"max", 1}};
    for (const auto& [name, share] : wanted) std::printf(", \"%s\": %.1f", name, percentile(share));
    std::printf("}\n");
  }

 private:
  double percentile(double share) const {
    if (latencies_us_.empty()) return 0;
    const auto rank = static_cast<size_t>(share * static_cast<double>(latencies_us_.size()));
    return latencies_us_[std::min(rank, latencies_us_.size() - 1)];
  }

  // It sleeps between requests, also with a rate: who runs beside it on its core shall not be what is measured.
  timespec until_next_due() const {
    if (plan_.rate == 0 || stopping_ || started_ == plan_.requests || idle_.empty()) return {0, 100'000'000};
    const std::chrono::duration<double> due(static_cast<double>(started_) / plan_.rate);
    const auto left = std::chrono::duration_cast<std::chrono::nanoseconds>(begin_ + due - Steady::now()).count();
    return {0, std::clamp<long>(left, 0, 100'000'000)};
  }

  void open(Connection& connection) {
    if (connection.fd >= 0) ::close(connection.fd);
    connection = Connection{};
    connection.fd = connect_to(plan_.port);
    watch(epoll_, connection.fd, EPOLLIN, &connection);
    idle_.push_back(&connection);
  }

  void start_due(Steady::time_point now) {
    while (!idle_.empty() && !stopping_ && started_ < plan_.requests) {
      auto due = now;
      if (plan_.rate > 0) {
        const std::chrono::duration<double> after(static_cast<double>(started_) / plan_.rate);
        due = begin_ + std::chrono::duration_cast<Steady::duration>(after);
        if (due > now) return;
      }
      Connection* connection = idle_.front();
      idle_.erase(idle_.begin());
      start(*connection, due);
    }
  }

  void start(Connection& connection, Steady::time_point due) {
    const uint64_t turn = plan_.at_random ? chance_() : started_;
    std::string path = plan_.path;
    if (const size_t mark = path.find('#'); mark != std::string::npos)
      path.replace(mark, 1, std::to_string(plan_.first + turn % plan_.objects));
    ++started_;
    connection.busy = true;
    connection.due = due;
    connection.object = object_of(path).value_or(Object{});
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: " + plan_.host + "\r\n\r\n";
    // At the very start the connection may still be under way; loopback is quick.
    while (::send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
      if (errno == EAGAIN || errno == ENOTCONN) continue;
      return end_badly(connection);
    }
  }

  void receive(Connection& connection) {
    const ssize_t got = ::read(connection.fd, buffer_.get(), kReadBytes);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return end_badly(connection);
    std::string_view bytes(buffer_.get(), static_cast<size_t>(got));
    if (!connection.in_body && !read_head(connection, bytes)) return;
    if (plan_.verify && !matches(connection, bytes)) return end_badly(connection);
    connection.position += bytes.size();
    heard_ = Steady::now();
    bytes_ += bytes.size();
    if (connection.position < connection.size_bytes) return;
    const std::chrono::duration<double, std::micro> taken = Steady::now() - connection.due;
    latencies_us_.push_back(taken.count());
    connection.head.clear();
    connection.in_body = connection.busy = false;
    idle_.push_back(&connection);
  }

  // Takes the head off `bytes`. False when there is no body byte to look at: incomplete or refused.
  bool read_head(Connection& connection, std::string_view& bytes) {
    const size_t before = connection.head.size();
    connection.head.append(bytes.substr(0, 64 * 1024));
    const size_t size = head_size(connection.head);
    if (size == 0) return false;
    bytes.remove_prefix(size - before);
    connection.head.resize(size);
    const std::string_view length = field_of(connection.head, "content-length:");
    connection.position = connection.size_bytes = 0;
    std::from_chars(length.data(), length.data() + length.size(), connection.size_bytes);
    connection.in_body = true;
    const bool good = connection.head.starts_with("HTTP/1.1 200") && !length.empty();
    if (!good) end_badly(connection);
    return good;
  }

  static bool matches(const Connection& connection, std::string_view bytes) {
    return bytes == bytes_at(connection.object, connection.position, bytes.size());
  }

  void end_badly(Connection& connection) {
    if (errors_++ == 0) std::fprintf(stderr, "bench_client: a bad answer: %.200s\n", connection.head.c_str());
    if (errors_ > 1000) die("too many bad answers");
    std::erase(idle_, &connection);
    open(connection);
  }

  const Plan& plan_;
  const int epoll_;
  const std::unique_ptr<char[]> buffer_;
  std::vector<Connection> connections_;
  std::vector<Connection*> idle_;
  std::minstd_rand chance_{1};
  Steady::time_point begin_, heard_;
  bool stopping_ = false;
  uint64_t started_ = 0, errors_ = 0, bytes_ = 0;
  std::vector<double> latencies_us_;
  double seconds_ = 0;
};

}  // namespace
}  // namespace nezha::bench

int main(int argc, char** argv) {
  using namespace nezha::bench;
  const Arguments arguments(argc, argv);
  const Plan plan(arguments);
  std::signal(SIGTERM, [](int) { asked_to_stop = 1; });
  ::prctl(PR_SET_TIMERSLACK, 1);  // nanoseconds
  Client client(plan);
  client.run();
  client.print();
}
