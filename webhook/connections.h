// OpenConnections: which TLS connections of the admission server are open, and which of them wait for a request.
// It lets a full server make room, and a draining one end the connections that would only idle.
// Threads: any.
#pragma once

#include <openssl/ssl.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace nezha::webhook {

class OpenConnections {
 public:
  OpenConnections() = default;
  OpenConnections(const OpenConnections&) = delete;
  OpenConnections& operator=(const OpenConnections&) = delete;

  // Follows every connection made from this context. REQUIRES: *this outlives the context.
  void watch(SSL_CTX& context);

  // A request of this connection begins or has been answered.
  void begin_request(const SSL* connection);
  void end_request(const SSL* connection);

  // Ends the connection behind the answer that was written last, also while the client is still sending.
  // REQUIRES: called by the thread that serves the connection.
  void close_after_this(const SSL* connection);
  // Ends the connection that has waited longest for a request, or else the next one that begins to wait. A request
  // that is on its way at that moment is still answered.
  void make_room();
  // The same for every connection that waits for a request.
  void close_idle();

 private:
  enum class State { kHandshake, kIdle, kBusy };
  struct Connection {
    int descriptor = -1;
    State state = State::kHandshake;
    uint64_t idle_since = 0;  // a count, not a time: smaller has waited longer
  };

  static int free_index();
  static void on_state(const SSL* connection, int where, int result);
  static void on_free(void* connection, void* self, CRYPTO_EX_DATA* data, int index, long number, void* pointer);

  void opened(SSL* connection);
  void move(const SSL* connection, State from, State to);
  static void end(Connection& connection);

  std::mutex mutex_;
  uint64_t ticks_ = 0;
  size_t rooms_owed_ = 0;                          // make_room() found no idle connection
  std::map<const void*, Connection> connections_;  // by SSL*
};

}  // namespace nezha::webhook
