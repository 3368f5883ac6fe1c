// RawClient: an HTTP client that shows everything: bytes out as given, answers taken apart by a strict reader of its
// own, and how each answer ended. Threads: one at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/socket.h"

namespace nezha::test {

struct ClientAnswer {
  enum class End {
    kComplete,   // as the answer's own framing proves
    kTruncated,  // an orderly end of the connection before that
    kReset,      // the connection was reset
    kNonsense,   // not HTTP
    kTimeout,    // the watchdog
  };
  int status = 0;
  std::string head;                   // with the empty line
  std::string body;                   // decoded
  std::vector<std::string> interims;  // heads of 1xx answers before it
  End end = End::kTruncated;

  bool complete() const { return end == End::kComplete; }
  bool has(std::string_view name) const { return field(name).has_value(); }
  std::optional<std::string> field(std::string_view name) const;  // the first of that name
  std::string value(std::string_view name) const { return field(name).value_or(""); }
  std::string cache_status() const { return value("Cache-Status"); }
};

class RawClient {
 public:
  explicit RawClient(uint16_t port, int receive_buffer_bytes = 0)
      : RawClient(connect_loopback(port, receive_buffer_bytes)) {}
  explicit RawClient(Socket socket) : socket_(std::move(socket)) {}

  bool send(std::string_view bytes) { return socket_.send(bytes); }
  // The next answer. `to_head`: to a HEAD request.
  ClientAnswer read_answer(bool to_head = false);
  // Only its head: the body is then read by read_body_bytes().
  ClientAnswer read_head();
  // Exactly this many raw bytes behind the head, fewer when the connection ended.
  std::string read_bytes(size_t size);
  // send() and read_answer().
  ClientAnswer ask(std::string_view request, bool to_head = false);
  // True once the peer has closed, in whichever way, with nothing more to read.
  bool closed_by_peer();
  Socket& socket() { return socket_; }

 private:
  bool more(ClientAnswer& answer);
  bool take_head(ClientAnswer& answer);
  void take_body(ClientAnswer& answer, bool to_head);
  void take_chunked(ClientAnswer& answer);
  bool take_line(ClientAnswer& answer, std::string& line);

  Socket socket_;
  std::string buffer_;
};

// "GET target HTTP/1.1", Host, the fields ("Name: value\r\n" each) and the empty line.
std::string get(std::string_view target, std::string_view fields = "", std::string_view method = "GET");

}  // namespace nezha::test
