#include "cache/supervise/link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <vector>

#include "cache/classify/object_paths.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

constexpr std::chrono::milliseconds kBeatEvery{250};
constexpr std::chrono::milliseconds kReadyLook{20};
constexpr std::chrono::seconds kTurnMax{1};  // a loop that did nothing for longer does not count as alive

Result<void> adopt(const std::vector<int>& descriptors, size_t loops, std::vector<ListeningSockets::OfAddress>& into) {
  if (descriptors.size() % loops != 0)
    return fail(Remedy::kFixInput, "the supervisor handed on sockets for another number of loops");
  for (size_t i = 0; i < descriptors.size(); ++i) {
    NEZHA_TRY(auto socket, net::adopt_socket(descriptors[i]));
    if (i % loops == 0) into.emplace_back();
    into.back().push_back(std::move(socket));
  }
  return ok();
}

}  // namespace

Result<ListeningSockets> adopt_sockets(const Inheritance& inherited, size_t loops) {
  ListeningSockets out;
  NEZHA_TRY(adopt(inherited.http, loops, out.http));
  NEZHA_TRY(adopt(inherited.https, loops, out.https));
  NEZHA_TRY(adopt(inherited.relay, loops, out.relay));
  return out;
}

SupervisorLink::SupervisorLink(int descriptor) : descriptor_(descriptor) {
  if (descriptor_ < 0) return;
  ::fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  beater_ = std::jthread([this](const std::stop_token& stop) { beat(stop); });
}

SupervisorLink::~SupervisorLink() {
  if (descriptor_ < 0) return;
  beater_ = {};
  receiver_.request_stop();
  ::shutdown(descriptor_, SHUT_RD);  // wakes the receiver
  receiver_ = {};
  send(link::kLeaves);
  ::close(descriptor_);
}

void SupervisorLink::serve(Server& server, Store& store, const Clock& clock, std::function<bool()> ready) {
  if (descriptor_ < 0) return server.accept();
  {
    std::lock_guard lock(mutex_);
    server_ = &server;
    store_ = &store;
    clock_ = &clock;
    ready_ = std::move(ready);
  }
  receiver_ = std::jthread([this](const std::stop_token& stop) { receive(stop); });
}

// Full: the supervisor is busy or stopped, and the next beat will do.
void SupervisorLink::send(char message) {
  const int wait = message == link::kAlive ? MSG_DONTWAIT : 0;
  (void)!::send(descriptor_, &message, 1, wait | MSG_NOSIGNAL);
}

bool SupervisorLink::is_alive() { return !server_ || clock_->now() - server_->last_turn() < kTurnMax; }

void SupervisorLink::beat(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (is_alive()) send(link::kAlive);
    wake_.wait_for(lock, stop, kBeatEvery, [] { return false; });
  }
}

void SupervisorLink::receive(const std::stop_token& stop) {
  while (!ready_() && !stop.stop_requested()) std::this_thread::sleep_for(kReadyLook);
  send(link::kReady);
  std::string message(limits::kHeadBytesMax * 2, '\0');
  for (;;) {
    const ssize_t got = ::recv(descriptor_, message.data(), message.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    const std::string text(message, 1, static_cast<size_t>(got) - 1);
    if (message[0] == link::kAccept) {
      server_->accept();
      continue;
    }
    if (message[0] == link::kDropPath) store_->purge({text});
    if (message[0] == link::kDropUnder) store_->purge_if([&](const std::string& path) { return is_under(path, text); });
    send(link::kDropped);
  }
}

}  // namespace nezha::cache
