// ScriptedOrigin: an upstream made of raw bytes. Each connection has a thread of its own that takes requests apart,
// records them, and hands them to a handler, which sends whatever bytes it likes and may wait, close or reset.
// Threads: the handler runs on connection threads; everything else may be called from any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "test/support/socket.h"

namespace nezha::test {

struct RecordedRequest {
  std::string head;  // with the empty line, byte for byte
  std::string body;  // decoded
  size_t connection = 0;
  std::string method() const { return head.substr(0, head.find(' ')); }
  std::string target() const;
  std::optional<std::string> field(std::string_view name) const;
  bool has(std::string_view name) const { return field(name).has_value(); }
  size_t count(std::string_view name) const;
};

class OriginConnection {
 public:
  OriginConnection(Socket socket, size_t number) : socket_(std::move(socket)), number_(number) {}
  // Nothing at the end of the connection.
  std::optional<RecordedRequest> read_head();
  // The body of a request whose head was read; false when the connection ended inside it.
  bool read_body(RecordedRequest& request);
  // At most `bytes_max` bytes of whatever comes; false at the end.
  bool read_some(std::string& into, size_t bytes_max);

  bool send(std::string_view bytes) { return socket_.send(bytes); }
  void close() { over_ = true, socket_.close(); }
  void reset() { over_ = true, socket_.reset(); }
  bool over() const { return over_; }
  Socket& socket() { return socket_; }

 private:
  bool more();
  Socket socket_;
  size_t number_;
  std::string buffer_;
  bool over_ = false;
};

class ScriptedOrigin {
 public:
  using Handler = std::function<void(OriginConnection&, const RecordedRequest&)>;
  // `read_bodies`: bodies are read before the handler runs; otherwise it reads them itself.
  explicit ScriptedOrigin(Handler handler, bool read_bodies = true);
  ~ScriptedOrigin();

  uint16_t port() const { return listening_.port; }
  void set_handler(Handler handler);
  std::vector<RecordedRequest> requests() const;
  // For tests of so many requests that keeping them all would be the test's own leak.
  void forget_requests();
  size_t count() const { return requests().size(); }
  // Requests of which this is true.
  size_t count_if(const std::function<bool(const RecordedRequest&)>& wanted) const;
  RecordedRequest last() const { return requests().back(); }
  // False when the watchdog ended the wait.
  bool wait_for_count(size_t count);
  // Ends every open connection, as a restart would.
  void drop_connections();

 private:
  void accept_loop();
  struct Served {
    Served(Socket socket, size_t number) : connection(std::move(socket), number) {}
    OriginConnection connection;
    std::thread thread;
    bool ended = false;
  };
  void serve(Served& served);

  ListeningSocket listening_;
  const bool read_bodies_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Handler handler_;
  std::vector<RecordedRequest> requests_;
  std::list<Served> served_;
  size_t accepted_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread acceptor_;
};

// "HTTP/1.1 status OK", the fields, Content-Length and the body.
std::string response(int status, std::string_view fields, std::string_view body);
// The same body as chunks of this size.
std::string chunked_response(std::string_view fields, std::string_view body, size_t chunk_bytes);
std::string chunks(std::string_view body, size_t chunk_bytes);

// The same bytes for the same seed and place, different ones elsewhere: any misplaced byte is seen.
std::string pattern_bytes(size_t size, uint64_t seed);

}  // namespace nezha::test
