// Loop: one thread's io_context with its listeners, dialled connections, timers and deadline sweeps.
// Threads: run() occupies the calling thread; post() and stop() may be called from any thread; the rest on the loop.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "nezha/base/clock.h"
#include "nezha/net/async.h"
#include "nezha/net/stream.h"

namespace nezha::net {

struct SocketAddress {
  std::string ip;  // canonical text
  uint16_t port = 0;
  std::string text() const;  // "127.0.0.1:80", "[::1]:80"
};

// A listening socket of one loop (SO_REUSEPORT: the kernel spreads connections over loops).
class Listener {
 public:
  virtual ~Listener() = default;
  // The next connection; fails once close() was called. Transient failures (no descriptors left) are waited out.
  virtual Task<Result<std::unique_ptr<Stream>>> accept() = 0;
  virtual void close() = 0;
  virtual SocketAddress address() const = 0;  // with the port the kernel chose for port 0
};

// A socket that listens and is of no loop: loops of several processes may accept from it.
class BoundSocket {
 public:
  explicit BoundSocket(int descriptor) : descriptor_(descriptor) {}
  BoundSocket(BoundSocket&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  BoundSocket& operator=(BoundSocket&&) = delete;
  ~BoundSocket();
  int descriptor() const { return descriptor_; }
  SocketAddress address() const;  // with the port the kernel chose for port 0

 private:
  int descriptor_;
};

// Fails with kFixInput: the address cannot be bound. Sockets may share it (SO_REUSEPORT).
Result<BoundSocket> bind_socket(const SocketAddress& address);
// One that another process handed on. Fails with kFixInput: the descriptor is no socket that listens.
Result<BoundSocket> adopt_socket(int descriptor);

// Ends what it stands for when it goes.
class Watch {
 public:
  virtual ~Watch() = default;
};

class Loop {
 public:
  virtual ~Loop() = default;
  virtual Executor executor() = 0;
  virtual void run() = 0;  // returns after stop()
  virtual void stop() = 0;
  // Runs on the calling thread until done() holds or the deadline passes, also after stop(). For tearing down.
  virtual void run_until(const std::function<bool()>& done, SteadyTime deadline) = 0;
  virtual void post(std::function<void()> work) = 0;

  virtual Result<std::unique_ptr<Listener>> listen(const SocketAddress& address) = 0;
  // Accepts from a duplicate of the socket: closing the listener leaves it, and who waits there, to its other users.
  virtual Result<std::unique_ptr<Listener>> listen_on(const BoundSocket& socket) = 0;
  virtual Task<Result<std::unique_ptr<Stream>>> connect(const SocketAddress& address, SteadyTime deadline) = 0;
  // Calls `work` again and again, until the loop is gone.
  virtual void every(std::chrono::milliseconds period, std::function<void()> work) = 0;
  // Calls `work` whenever the descriptor has something to read. It reads all of that, or ends the watch.
  virtual std::unique_ptr<Watch> watch(int descriptor, std::function<void()> work) = 0;
  // Every open stream and pending connect fails from now on.
  virtual void expire_all() = 0;
  virtual Task<> sleep(std::chrono::milliseconds duration) = 0;
};

// Fails with kFixInput when an address cannot be bound or somebody listens there. Loops share an address
// (SO_REUSEPORT): without this, another process of the same user would share it unseen.
Result<void> check_unused(const SocketAddress& address);

std::unique_ptr<Loop> make_loop();

}  // namespace nezha::net
