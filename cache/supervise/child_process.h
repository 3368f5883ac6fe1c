// ChildProcess: the program starts itself again, as the cache that its supervisor watches. The child dies with the
// thread that started it. Threads: one.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "cache/accept/server.h"

namespace nezha::cache {

class ChildProcess {
 public:
  // `arguments`: of this process, with its name first; the child gets them and what it inherits.
  ChildProcess(std::vector<std::string> arguments, const ListeningSockets& sockets);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Fails with kRetryLater: the system has no room for another process.
  Result<void> start();
  // It was reaped.
  void forget();
  void send_signal(int signal) const;
  pid_t id() const { return id_; }
  bool runs() const { return id_ > 0; }
  int link() const { return link_; }  // our end of it; does not block

 private:
  [[noreturn]] void become_cache(char* const* arguments, int link, pid_t supervisor) const;

  const std::vector<std::string> arguments_;
  std::vector<int> http_, https_, relay_;
  pid_t id_ = -1;
  int link_ = -1;
};

}  // namespace nezha::cache
