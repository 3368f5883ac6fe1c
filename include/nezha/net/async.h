// The coroutine vocabulary of the data plane: Task, Loop executor, Gate, Notification.
// One Loop is one thread with one epoll; everything that belongs to a loop is touched by its thread alone.
// Structured: every coroutine is spawned through a Gate, whose owner waits for it; none is detached.
// g++ 12: no capturing lambda may be a coroutine; coroutines here are free functions or members.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "nezha/base/result.h"

namespace nezha::net {

namespace asio = boost::asio;
using Executor = asio::io_context::executor_type;
template <class T = void>
using Task = asio::awaitable<T, Executor>;
inline constexpr asio::use_awaitable_t<Executor> use_task{};

// Counts the coroutines of one loop. Close it, then wait until it is empty: nothing runs any more.
// Threads: the loop's own.
class Gate {
 public:
  explicit Gate(Executor executor) : executor_(executor) {}
  ~Gate();  // REQUIRES: size() == 0
  // Starts the task on the loop. An exception that leaves it is a bug and aborts the process.
  void spawn(Task<> task);
  size_t size() const { return size_; }

 private:
  Executor executor_;
  size_t size_ = 0;
};

// Lets the loop's other coroutines run first.
Task<> yield();

// Wakes coroutines of any loop that wait for something to change. The state they wait for lives elsewhere, behind a
// mutex of its own: take version() under that mutex, look, and wait(version) when there was nothing to see.
// Threads: any. Waiters are resumed on their own loops.
class Notification {
 public:
  Notification();
  ~Notification();
  uint64_t version() const;
  void notify_all();
  // Returns once the version differs from `seen`, at once if it does already.
  Task<> wait(uint64_t seen);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

// Runs `work` on the pool's threads and resumes on the caller's loop. For calls that may block (files).
class Workers {
 public:
  virtual ~Workers() = default;
  virtual Task<> run(std::function<void()> work) = 0;
  // Starts it without waiting; whoever needs to know has to be told by the work itself.
  virtual void start(std::function<void()> work) = 0;
  // Waits for all that was started. Nothing may be started any more.
  virtual void join() = 0;
};
std::unique_ptr<Workers> make_workers(size_t threads);

}  // namespace nezha::net
