#include "src/k8s/client/sigpipe.h"

#include <pthread.h>

#include <ctime>

namespace nezha::k8s {
namespace {

sigset_t only_sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool sigpipe_pending() {
  sigset_t pending;
  sigemptyset(&pending);
  return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

NoSigpipe::NoSigpipe() : was_pending_(sigpipe_pending()) {
  const sigset_t set = only_sigpipe();
  pthread_sigmask(SIG_BLOCK, &set, &previous_);
}

NoSigpipe::~NoSigpipe() {
  // A SIGPIPE raised meanwhile waits on this thread: take it, or it would strike when the mask is restored.
  if (!was_pending_ && sigpipe_pending()) {
    const sigset_t set = only_sigpipe();
    const timespec no_wait{};
    sigtimedwait(&set, nullptr, &no_wait);
  }
  pthread_sigmask(SIG_SETMASK, &previous_, nullptr);
}

}  // namespace nezha::k8s
