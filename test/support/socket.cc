#include "test/support/socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <utility>

#include "nezha/base/check.h"

namespace nezha::test {
namespace {

constexpr int kWatchdogMs = 60'000;

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void no_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool wait_for(int fd, short events) {
  pollfd entry{fd, events, 0};
  for (;;) {
    const int ready = ::poll(&entry, 1, kWatchdogMs);
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

}  // namespace

Socket::Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}
Socket::~Socket() { close(); }

bool Socket::send(std::string_view bytes) {
  while (!bytes.empty()) {
    if (!wait_for(fd_, POLLOUT)) return false;
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool Socket::send_fragmented(std::string_view bytes, size_t fragment_bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, fragment_bytes);
    if (!send(piece)) return false;
    bytes.remove_prefix(piece.size());
  }
  return true;
}

Socket::Read Socket::read_more(std::string& into, size_t bytes_max) {
  for (;;) {
    if (!wait_for(fd_, POLLIN)) return Read::kTimeout;
    const size_t before = into.size();
    into.resize(before + bytes_max);
    const ssize_t got = ::recv(fd_, into.data() + before, bytes_max, MSG_DONTWAIT);
    into.resize(before + static_cast<size_t>(std::max<ssize_t>(got, 0)));
    if (got > 0) return Read::kBytes;
    if (got == 0) return Read::kEnd;
    if (errno != EAGAIN && errno != EINTR) return Read::kReset;
  }
}

void Socket::end_sending() { ::shutdown(fd_, SHUT_WR); }
void Socket::shut() { ::shutdown(fd_, SHUT_RDWR); }

void Socket::reset() {
  const linger hard{1, 0};
  ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
  close();
}

void Socket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void Socket::limit_receive_buffer(int bytes) { ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes); }

Socket try_connect_loopback(uint16_t port, int receive_buffer_bytes) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (receive_buffer_bytes > 0) socket.limit_receive_buffer(receive_buffer_bytes);
  const sockaddr_in address = loopback(port);
  const int done = ::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (done != 0) return Socket();
  no_delay(socket.fd());
  return socket;
}

Socket connect_loopback(uint16_t port, int receive_buffer_bytes) {
  Socket socket = try_connect_loopback(port, receive_buffer_bytes);
  NEZHA_CHECK(socket.open(), "connecting to a port of this test");
  return socket;
}

ListeningSocket listen_loopback(int backlog) {
  ListeningSocket out{Socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), 0};
  sockaddr_in address = loopback(0);
  const int bound = ::bind(out.socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int listening = ::listen(out.socket.fd(), backlog);
  socklen_t size = sizeof address;
  ::getsockname(out.socket.fd(), reinterpret_cast<sockaddr*>(&address), &size);
  NEZHA_CHECK(bound == 0 && listening == 0, "listening on 127.0.0.1");
  out.port = ntohs(address.sin_port);
  return out;
}

uint16_t dead_port() { return listen_loopback().port; }

size_t open_descriptors(const std::string& process) {
  const std::filesystem::directory_iterator entries("/proc/" + process + "/fd");
  return static_cast<size_t>(std::distance(begin(entries), end(entries)));
}

size_t open_sockets(const std::string& process) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + process + "/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry.path(), gone).string().starts_with("socket:");
  }
  return count;
}

}  // namespace nezha::test
