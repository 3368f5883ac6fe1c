// The line between the supervisor and the cache that it started: a socket pair, one short message at a time.
//   from the cache: 'b' it is alive, 'r' ready to accept, 'd' one more drop is done, 'l' it leaves
//   to the cache: 'p' and a path, or 'u' and a prefix: drop what is stored under it; 'a' accept from now on
// This is the cache's end. Threads: two of its own, which the callbacks are called from; the rest is the owner's.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "cache/accept/server.h"

namespace nezha::cache {

namespace link {
inline constexpr char kAlive = 'b', kReady = 'r', kDropped = 'd', kLeaves = 'l';
inline constexpr char kDropPath = 'p', kDropUnder = 'u', kAccept = 'a';
}  // namespace link

// What the cache was started with; without a supervisor `link` is -1.
struct Inheritance {
  int link = -1;
  std::vector<int> http, https, relay;  // sockets that listen, those of an address side by side
  bool supervised() const { return link >= 0; }
};

// Fails with kFixInput: they are no sockets that listen, or not as many for each address as there are loops.
Result<ListeningSockets> adopt_sockets(const Inheritance& inherited, size_t loops);

class SupervisorLink {
 public:
  // Tells the supervisor from now on that the process lives. Owns the descriptor; -1: there is no supervisor, and
  // nothing happens here.
  explicit SupervisorLink(int descriptor);
  // Says that the cache leaves: it accepts nobody any more.
  ~SupervisorLink();

  // Everything is there: once `ready` holds, drops what the supervisor names, then accepts when it says so. Called
  // once; all of them outlive this.
  void serve(Server& server, Store& store, const Clock& clock, std::function<bool()> ready);

 private:
  void beat(const std::stop_token& stop);
  void receive(const std::stop_token& stop);
  bool is_alive();
  void send(char message);

  const int descriptor_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  Server* server_ = nullptr;
  Store* store_ = nullptr;
  const Clock* clock_ = nullptr;
  std::function<bool()> ready_;
  std::jthread beater_, receiver_;
};

}  // namespace nezha::cache
