// Blocking TCP on 127.0.0.1 for tests: the plainest possible peer of the product, sharing no code with it.
// Every wait has a watchdog of 60 s, so that a hanging product fails a test instead of hanging it; no test is decided
// by that time. Threads: one at a time per Socket, but shut() may be called from any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nezha::test {

class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept;
  Socket& operator=(Socket&& other) noexcept;
  ~Socket();

  bool open() const { return fd_ >= 0; }
  int fd() const { return fd_; }

  // False when the peer is gone.
  bool send(std::string_view bytes);
  // In pieces of `fragment_bytes`, each in a segment of its own as far as TCP_NODELAY can do that.
  bool send_fragmented(std::string_view bytes, size_t fragment_bytes);

  enum class Read { kBytes, kEnd, kReset, kTimeout };
  // Appends what has come, waiting for at least one byte.
  Read read_more(std::string& into, size_t bytes_max = 65536);

  void end_sending();  // FIN
  void reset();        // RST, and closed
  void close();        // FIN, and closed
  void shut();         // wakes a reader of another thread
  void limit_receive_buffer(int bytes);

 private:
  int fd_;
};

// Connects, or aborts the test program.
Socket connect_loopback(uint16_t port, int receive_buffer_bytes = 0);
// For a peer that may be gone: then the socket is not open.
Socket try_connect_loopback(uint16_t port, int receive_buffer_bytes = 0);

struct ListeningSocket {
  Socket socket;
  uint16_t port = 0;
};
ListeningSocket listen_loopback(int backlog = 1024);

// A port of 127.0.0.1 on which nobody listens.
uint16_t dead_port();

// Open descriptors of this process, or of another; how many of them are sockets.
size_t open_descriptors(const std::string& process = "self");
size_t open_sockets(const std::string& process = "self");

}  // namespace nezha::test
