// Supervised: the program with --supervise over a tier on files, before an origin of the test's; and its child, the
// cache, which a test may kill. Threads: the test's own.
#pragma once

#include <sys/types.h>

#include <string>

#include "test/support/cache_process.h"
#include "test/support/raw_client.h"
#include "test/support/temporary_directory.h"

namespace nezha::test {

class Supervised {
 public:
  // Host data.example is fetched from 127.0.0.1:origin_port, tls.example is relayed to 127.0.0.1:tls_port.
  explicit Supervised(uint16_t origin_port, uint16_t tls_port = 1, std::vector<std::string> by = {},
                      std::vector<std::string> more_arguments = {});
  // Returns when the cache accepts.
  void start();

  CacheProcess& process() { return process_; }
  uint16_t port() const { return process_.port(); }
  pid_t cache() const;      // that was started last
  size_t accepted() const;  // how often a cache began to accept
  // Kills the cache; the next one that accepts is wait_back(accepted() before).
  void kill_cache() const;
  bool wait_back(size_t accepted_before) const;
  // No cache starts until come_back(): the configuration is unreadable for it, while the supervisor keeps the last good
  // one. Returns when the cache is gone for the second time.
  void send_away();
  bool come_back();

  ClientAnswer ask(const std::string& request) const { return RawClient(port()).ask(request); }
  bool becomes_hit(const std::string& target) const;  // stored, it is one

 private:
  size_t count(const std::string& text) const;

  const TemporaryDirectory tier_;
  const std::string configuration_;
  CacheProcess process_;
};

}  // namespace nezha::test
