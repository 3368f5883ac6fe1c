// bench_bare_server: the least a server can do for a hit. It finds the path's stored answer and sends it, from memory
// in one writev or by sendfile, whichever costs this machine less at that size; it measures both at start and says so.
// What it reaches is what this machine allows; nothing is stored, checked or counted.
//
//   bench_bare_server --port 8002 --size 4096 --size 1048576 [--reader-cpu 1] [--folder DIR]
//
// One thread, level-triggered epoll. Any path of /o/SIZE/NAME is answered; sizes not named at start go by writev.
#include <fcntl.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <thread>
#include <unordered_map>

#include "bench/arguments.h"
#include "bench/objects.h"
#include "bench/request_head.h"

namespace nezha::bench {
namespace {

enum class Way { kWritev, kSendfile };

constexpr int kCalibrationRuns = 6;
constexpr double kCalibrationSeconds = 0.05;  // of CPU, each

// A stored answer: the bytes in memory and, for sendfile, the same bytes in a file of the page cache.
struct Stored {
  std::string head;
  char* body = nullptr;
  uint64_t size_bytes = 0;
  int file = -1;
  Way way = Way::kWritev;
};

// A nameless file: on a disk's file system when `folder` is given, as a cache on disk has it, else in memory. The
// page cache of disks may hold larger pages than that of memory files, and sendfile gains by them.
int make_file(const std::string& folder) {
  return folder.empty() ? ::memfd_create("bench", MFD_CLOEXEC)
                        : ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}

Stored store(std::string_view path, const Object& object, Way way, const std::string& folder) {
  Stored stored;
  stored.size_bytes = object.size_bytes;
  stored.way = way;
  stored.head =
      "HTTP/1.1 200 OK\r\nServer: bare\r\nContent-Type: application/octet-stream\r\nETag: " + etag_of(object) +
      "\r\nContent-Length: " + std::to_string(object.size_bytes) + "\r\n\r\n";
  if (way == Way::kSendfile) stored.file = make_file(folder);
  void* memory = ::mmap(nullptr, object.size_bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if ((way == Way::kSendfile && stored.file < 0) || memory == MAP_FAILED) die("memory for " + std::string(path));
  ::madvise(memory, object.size_bytes + 1, MADV_HUGEPAGE);
  stored.body = static_cast<char*>(memory);
  for (uint64_t at = 0; at < object.size_bytes;) {
    const std::string_view piece = bytes_at(object, at, object.size_bytes);
    std::memcpy(stored.body + at, piece.data(), piece.size());
    if (way == Way::kSendfile && ::write(stored.file, piece.data(), piece.size()) < 0) die("writing the file");
    at += piece.size();
  }
  return stored;
}

// How far an answer got: `sent` counts head and body.
struct Progress {
  const Stored* answer = nullptr;
  uint64_t sent = 0;
};

// Sends what the socket takes. 1: all sent; 0: the socket is full; -1: it is broken.
int send_by_writev(int fd, Progress& progress) {
  const Stored& answer = *progress.answer;
  const uint64_t head = answer.head.size(), whole = head + answer.size_bytes;
  while (progress.sent < whole) {
    iovec parts[2] = {
        {const_cast<char*>(answer.head.data()) + std::min(progress.sent, head), head - std::min(progress.sent, head)},
        {answer.body + (std::max(progress.sent, head) - head), whole - std::max(progress.sent, head)}};
    const bool head_done = parts[0].iov_len == 0;
    const ssize_t sent = ::writev(fd, parts + head_done, head_done ? 1 : 2);
    if (sent < 0) return errno == EAGAIN ? 0 : -1;
    progress.sent += static_cast<uint64_t>(sent);
  }
  return 1;
}

int send_by_sendfile(int fd, Progress& progress) {
  const Stored& answer = *progress.answer;
  const uint64_t head = answer.head.size(), whole = head + answer.size_bytes;
  while (progress.sent < whole) {
    ssize_t sent = 0;
    if (progress.sent < head) {
      sent = ::send(fd, answer.head.data() + progress.sent, head - progress.sent, MSG_MORE);
    } else {
      off_t offset = static_cast<off_t>(progress.sent - head);
      sent = ::sendfile(fd, answer.file, &offset, whole - progress.sent);
    }
    if (sent < 0) return errno == EAGAIN ? 0 : -1;
    progress.sent += static_cast<uint64_t>(sent);
  }
  return 1;
}

int send_some(int fd, Progress& progress) {
  return progress.answer->way == Way::kWritev ? send_by_writev(fd, progress) : send_by_sendfile(fd, progress);
}

// CPU seconds of this thread per answer, over a connection of its own whose other end a second thread empties.
double seconds_per_answer(const Stored& stored, int reader_cpu) {
  const int listener = listen_on(0), client = connect_to(port_of(listener));
  int fd = -1;
  while ((fd = accept_from(listener)) < 0) ::sched_yield();
  for (const int end : {client, fd}) ::fcntl(end, F_SETFL, ::fcntl(end, F_GETFL) & ~O_NONBLOCK);
  std::thread reader([client, reader_cpu] {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<unsigned>(reader_cpu), &cpus);
    if (reader_cpu >= 0) ::sched_setaffinity(0, sizeof cpus, &cpus);
    const auto buffer = std::make_unique<char[]>(256 * 1024);
    while (::read(client, buffer.get(), 256 * 1024) > 0) {
    }
  });
  const auto cpu_seconds = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  };
  const double begin = cpu_seconds();
  uint64_t answers = 0;
  for (; cpu_seconds() - begin < kCalibrationSeconds || answers < 3; ++answers) {
    Progress progress{&stored, 0};
    if (send_some(fd, progress) != 1) die("calibration");
  }
  const double used = cpu_seconds() - begin;
  ::close(fd);
  reader.join();
  ::close(client);
  ::close(listener);
  return used / static_cast<double>(answers);
}

// The cheaper way for each size: the least of several short measurements taken in turns. The least, because other work
// on the machine can only add to it.
std::unordered_map<uint64_t, Way> choose_ways(const Arguments& arguments) {
  std::unordered_map<uint64_t, Way> chosen;
  const std::string folder = arguments.text("--folder", "");
  const int reader_cpu = static_cast<int>(arguments.number("--reader-cpu", 0));
  for (const std::string& size : arguments.all("--size")) {
    const std::string path = "/o/" + size + "/calibration";
    const Stored memory = store(path, *object_of(path), Way::kWritev, folder);
    const Stored file = store(path, *object_of(path), Way::kSendfile, folder);
    double by_writev = 1e9, by_sendfile = 1e9;
    for (int run = 0; run < kCalibrationRuns; ++run) {
      by_writev = std::min(by_writev, seconds_per_answer(memory, reader_cpu));
      by_sendfile = std::min(by_sendfile, seconds_per_answer(file, reader_cpu));
    }
    const Way way = by_writev <= by_sendfile ? Way::kWritev : Way::kSendfile;
    chosen[memory.size_bytes] = way;
    std::printf("%s bytes: writev %.2f us, sendfile %.2f us: %s\n", size.c_str(), by_writev * 1e6, by_sendfile * 1e6,
                way == Way::kWritev ? "writev" : "sendfile");
    for (const Stored& stored : {memory, file}) {
      ::munmap(stored.body, stored.size_bytes + 1);
      if (stored.file >= 0) ::close(stored.file);
    }
  }
  std::fflush(stdout);
  return chosen;
}

struct Connection {
  explicit Connection(int descriptor) : fd(descriptor) {}
  ~Connection() { ::close(fd); }
  const int fd;
  std::string received;
  Progress progress;
};

class Server {
 public:
  Server(int listener, std::unordered_map<uint64_t, Way> ways, std::string folder)
      : listener_(listener), epoll_(make_epoll()), ways_(std::move(ways)), folder_(std::move(folder)) {
    watch(epoll_, listener_, EPOLLIN, nullptr);
  }

  [[noreturn]] void run() {
    for (;;) {
      epoll_event events[256];
      const int count = ::epoll_wait(epoll_, events, 256, -1);
      for (int i = 0; i < count; ++i) {
        auto* connection = static_cast<Connection*>(events[i].data.ptr);
        if (!connection)
          accept_all();
        else if (!serve(*connection, events[i].events))
          delete connection;
      }
    }
  }

 private:
  void accept_all() {
    for (int fd; (fd = accept_from(listener_)) >= 0;) watch(epoll_, fd, EPOLLIN, new Connection(fd));
  }

  // False when the connection is over.
  bool serve(Connection& connection, uint32_t events) {
    if (connection.progress.answer) {
      const int sent = send_some(connection.fd, connection.progress);
      if (sent <= 0) return sent == 0;
      connection.progress = {};
      wait_for(connection, EPOLLIN);
    } else if (events & EPOLLIN) {
      char buffer[16 * 1024];
      const ssize_t got = ::read(connection.fd, buffer, sizeof buffer);
      if (got <= 0) return got < 0 && errno == EAGAIN;
      if (connection.received.empty()) {  // the usual case: nothing is copied
        std::string_view requests(buffer, static_cast<size_t>(got));
        const bool alive = answer_all(connection, requests);
        connection.received = requests;
        return alive;
      }
      connection.received.append(buffer, static_cast<size_t>(got));
    }
    std::string_view requests(connection.received);
    const bool alive = answer_all(connection, requests);
    connection.received.erase(0, connection.received.size() - requests.size());
    return alive;
  }

  bool answer_all(Connection& connection, std::string_view& requests) {
    while (const size_t size = head_size(requests)) {
      connection.progress = {find(path_of(requests.substr(0, size))), 0};
      requests.remove_prefix(size);
      if (!connection.progress.answer) return false;
      const int sent = send_some(connection.fd, connection.progress);
      if (sent < 0) return false;
      if (sent == 0) {
        wait_for(connection, EPOLLOUT);
        return true;
      }
      connection.progress = {};
    }
    return true;
  }

  void wait_for(Connection& connection, uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.ptr = &connection;
    ::epoll_ctl(epoll_, EPOLL_CTL_MOD, connection.fd, &event);
  }

  const Stored* find(std::string_view path) {
    const auto found = stored_.find(path);
    if (found != stored_.end()) return found->second.get();
    const auto object = object_of(path);
    if (!object) return nullptr;
    const auto way = ways_.find(object->size_bytes);
    const std::string& kept = *paths_.emplace_back(std::make_unique<std::string>(path));
    return (stored_[kept] = std::make_unique<Stored>(
                store(path, *object, way == ways_.end() ? Way::kWritev : way->second, folder_)))
        .get();
  }

  const int listener_, epoll_;
  const std::unordered_map<uint64_t, Way> ways_;
  const std::string folder_;
  std::vector<std::unique_ptr<std::string>> paths_;  // what the keys of stored_ borrow
  std::unordered_map<std::string_view, std::unique_ptr<Stored>> stored_;
};

}  // namespace
}  // namespace nezha::bench

int main(int argc, char** argv) {
  using namespace nezha::bench;
  const Arguments arguments(argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  auto ways = choose_ways(arguments);
  const int listener = listen_on(static_cast<uint16_t>(arguments.number("--port", 8002)));
  Server(listener, std::move(ways), arguments.text("--folder", "")).run();
}
