#include "cache/supervise/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace nezha::cache {
namespace {

constexpr const char* kProgram = "/proc/self/exe";

std::vector<int> descriptors_of(const std::vector<ListeningSockets::OfAddress>& sockets) {
  std::vector<int> out;
  for (const auto& of_address : sockets) {
    for (const auto& socket : of_address) out.push_back(socket.descriptor());
  }
  return out;
}

void add_list(const char* name, const std::vector<int>& descriptors, std::vector<std::string>& arguments) {
  if (descriptors.empty()) return;
  std::string list;
  for (const int each : descriptors) list += (list.empty() ? "" : ",") + std::to_string(each);
  arguments.insert(arguments.end(), {name, list});
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> arguments, const ListeningSockets& sockets)
    : arguments_(std::move(arguments)),
      http_(descriptors_of(sockets.http)),
      https_(descriptors_of(sockets.https)),
      relay_(descriptors_of(sockets.relay)) {}

ChildProcess::~ChildProcess() { forget(); }

Result<void> ChildProcess::start() {
  const auto no_room = [](const char* what) {
    return fail(Remedy::kRetryLater, std::string("cannot start the cache: ") + what + ": " + std::strerror(errno));
  };
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return no_room("socketpair");
  // All that allocates comes before fork(): other threads may hold the allocator's locks.
  std::vector<std::string> arguments = arguments_;
  arguments.insert(arguments.end(), {"--inherit-link", std::to_string(ends[1])});
  add_list("--inherit-http", http_, arguments);
  add_list("--inherit-https", https_, arguments);
  add_list("--inherit-relay", relay_, arguments);
  std::vector<char*> pointers;
  for (auto& each : arguments) pointers.push_back(each.data());
  pointers.push_back(nullptr);
  const pid_t supervisor = ::getpid();
  id_ = ::fork();
  if (id_ == 0) become_cache(pointers.data(), ends[1], supervisor);
  ::close(ends[1]);
  link_ = ends[0];
  ::fcntl(link_, F_SETFL, O_NONBLOCK);
  if (id_ > 0) return ok();
  const auto failure = no_room("fork");
  forget();
  return failure;
}

void ChildProcess::become_cache(char* const* arguments, int link, pid_t supervisor) const {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);  // it died before that
  ::fcntl(link, F_SETFD, 0);
  for (const auto* sockets : {&http_, &https_, &relay_}) {
    for (const int each : *sockets) ::fcntl(each, F_SETFD, 0);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execv(kProgram, arguments);
  ::_exit(127);
}

void ChildProcess::forget() {
  id_ = -1;
  if (link_ >= 0) ::close(link_);
  link_ = -1;
}

void ChildProcess::send_signal(int signal) const {
  if (runs()) ::kill(id_, signal);
}

}  // namespace nezha::cache
