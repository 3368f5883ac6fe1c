// CacheProcess: the program nezha-cache in a process of its own, on ports of the kernel's choice, that a test may kill
// and start again on the same tiers. It ends with the thread that started it. Threads: one starts and ends it; the
// rest may be called from any while it runs.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "test/support/temporary_directory.h"

namespace nezha::test {

class CacheProcess {
 public:
  // `configuration`: the YAML file without its section `listen`. `environment`: "NAME=value" to be added. `arguments`:
  // more of them. `by`: a command that is given the program and its arguments, and becomes the program.
  explicit CacheProcess(const std::string& configuration, std::vector<std::string> environment = {},
                        std::vector<std::string> arguments = {}, std::vector<std::string> by = {});
  ~CacheProcess();

  // Starts it and returns at once.
  void launch();
  // True when it serves; false when it ended before, or the watchdog ended the wait.
  bool wait_ready();
  // SIGKILL or SIGTERM; returns when it is gone: its exit status, or the signal that ended it, as a negative number.
  int kill();
  int stop();
  // Its exit status, once it ends by itself.
  int wait();

  // Replaces the configuration file.
  void configure(const std::string& configuration);

  pid_t id() const { return process_; }
  uint16_t port() const { return http_port_; }
  uint16_t tls_port() const { return https_port_; }
  uint16_t relay_port() const { return relay_port_; }  // never intercepts
  // The value of a series on its admin port, 0 when there is none.
  double metric(const std::string& series) const;

  size_t descriptors() const;
  size_t sockets() const;          // of its descriptors
  uint64_t private_bytes() const;  // resident and not of a file
  std::string log() const;         // of the last start
  const std::string& folder() const { return folder_.path(); }

 private:
  const TemporaryDirectory folder_;
  const std::string config_path_, log_path_;
  const std::vector<std::string> environment_, arguments_, by_;
  pid_t process_ = -1;
  std::atomic<uint16_t> http_port_{0}, https_port_{0}, relay_port_{0}, admin_port_{0};
};

}  // namespace nezha::test
