// Resolver: host names to addresses by DNS alone (c-ares). /etc/hosts is never read: the cache runs in pods whose hosts
// file points the data's names back at the cache. Answers are kept for their TTL (1 s … 300 s), failures for 5 s;
// questions for the same name are asked once.
// Threads: any; waiting coroutines resume on their own loop.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "nezha/config/settings.h"
#include "nezha/net/async.h"

namespace nezha::net {

class Resolver {
 public:
  virtual ~Resolver() = default;
  // All addresses, in the order of the answer; an IP literal is returned as it is. `absolute`: no search domains
  // (hosts of requests are full names; endpoints of the configuration may be short ones).
  // Fails with kAbsent (no such name) or kTimedOut or kRetryLater (no answer).
  virtual Task<Result<std::vector<std::string>>> resolve(std::string host, bool absolute) = 0;
};

// `servers` empty: those of /etc/resolv.conf.
Result<std::unique_ptr<Resolver>> make_resolver(const std::vector<config::ListenAddress>& servers);

}  // namespace nezha::net
