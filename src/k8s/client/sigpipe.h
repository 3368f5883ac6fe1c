// NoSigpipe: while it lives, writing to a closed connection on this thread is an error and no SIGPIPE.
// Needed because cpp-httplib writes without MSG_NOSIGNAL and OpenSSL's sockets cannot pass it.
// Threads: lives and dies on one thread; changes only that thread's signal mask.
#pragma once

#include <csignal>

namespace nezha::k8s {

class NoSigpipe {
 public:
  NoSigpipe();
  ~NoSigpipe();
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t previous_;
  bool was_pending_;
};

}  // namespace nezha::k8s
