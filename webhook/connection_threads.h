// ConnectionThreads: a thread per open connection, made when needed, up to a maximum; further connections wait.
// Blocks nothing: enqueue() returns at once. A thread without a connection stays for the next one.
// Threads: enqueue() and shutdown() from the accepting thread only.
#pragma once

#include <httplib.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace nezha::webhook {

class ConnectionThreads final : public httplib::TaskQueue {
 public:
  // `on_full` is called when a connection must wait, to make room; `on_shutdown` before the threads are joined.
  ConnectionThreads(size_t threads_max, std::function<void()> on_full, std::function<void()> on_shutdown);
  ~ConnectionThreads() override;

  void enqueue(std::function<void()> job) override;
  // Waiting connections are still served. Returns when every thread has ended.
  void shutdown() override;

 private:
  void work();

  const size_t threads_max_;
  const std::function<void()> on_full_;
  const std::function<void()> on_shutdown_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  size_t idle_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace nezha::webhook
