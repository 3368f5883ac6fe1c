// Resolver on c-ares: one thread owns the channel and polls its sockets; answers are shared through a mutex.
#include "nezha/net/resolver.h"

#include <ares.h>
#include <netdb.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "nezha/base/check.h"
#include "nezha/base/clock.h"
#include "nezha/base/text.h"

namespace nezha::net {
namespace {

using Addresses = std::vector<std::string>;
using std::chrono::seconds;

constexpr seconds kTtlMin{1}, kTtlMax{300}, kFailureTtl{5};
constexpr size_t kNamesMax = 10'000;  // answers kept
constexpr int kTimeoutMs = 2000, kTries = 3;

struct Answer {
  std::optional<Result<Addresses>> result;  // absent while the question is under way
  SteadyTime expires{};
  Notification changed;
};

std::string text_of(const ares_addrinfo_node& node) {
  char buffer[INET6_ADDRSTRLEN] = "";
  const void* address = node.ai_family == AF_INET
                            ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(node.ai_addr)->sin_addr)
                            : &reinterpret_cast<const sockaddr_in6*>(node.ai_addr)->sin6_addr;
  return ares_inet_ntop(node.ai_family, address, buffer, sizeof buffer) ? buffer : "";
}

class AresResolver final : public Resolver {
 public:
  explicit AresResolver(ares_channel channel) : channel_(channel), wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    NEZHA_CHECK(wake_ >= 0, "eventfd");
    thread_ = std::thread([this] { serve(); });
  }

  ~AresResolver() override {
    stop_ = true;
    wake();
    thread_.join();
    ares_destroy(channel_);
    ::close(wake_);
  }

  Task<Result<Addresses>> resolve(std::string host, bool absolute) override {
    if (const auto ip = canonical_ip(host)) co_return Addresses{*ip};
    if (absolute && !host.ends_with('.')) host += '.';
    for (;;) {
      const std::shared_ptr<Answer> answer = look_up(host);
      const uint64_t version = answer->changed.version();
      if (auto result = ready(*answer)) co_return *result;
      co_await answer->changed.wait(version);
    }
  }

 private:
  // The answer in force, or a new question.
  std::shared_ptr<Answer> look_up(const std::string& host) {
    std::lock_guard lock(mutex_);
    auto& answer = answers_[host];
    if (answer && (!answer->result || answer->expires > std::chrono::steady_clock::now())) return answer;
    const auto fresh = std::make_shared<Answer>();
    answer = fresh;
    questions_.push_back(host);
    if (answers_.size() > kNamesMax) drop_expired();
    wake();
    return fresh;
  }

  std::optional<Result<Addresses>> ready(const Answer& answer) {
    std::lock_guard lock(mutex_);
    return answer.result;
  }

  void drop_expired() {
    const auto now = std::chrono::steady_clock::now();
    std::erase_if(answers_, [&](const auto& entry) { return entry.second->result && entry.second->expires <= now; });
  }

  void wake() {
    const uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_, &one, sizeof one);
  }

  void serve() {
    while (!stop_) {
      ask_new_questions();
      ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
      const int bits = ares_getsock(channel_, sockets, ARES_GETSOCK_MAXNUM);
      std::vector<pollfd> polled{{wake_, POLLIN, 0}};
      for (int i = 0; i < ARES_GETSOCK_MAXNUM; ++i) {
        const bool readable = ARES_GETSOCK_READABLE(bits, i), writable = ARES_GETSOCK_WRITABLE(bits, i);
        if (!readable && !writable) continue;
        polled.push_back({sockets[i], static_cast<short>((readable ? POLLIN : 0) | (writable ? POLLOUT : 0)), 0});
      }
      timeval limit{1, 0}, buffer{};
      const timeval* wait = ares_timeout(channel_, &limit, &buffer);
      ::poll(polled.data(), polled.size(), static_cast<int>(wait->tv_sec * 1000 + wait->tv_usec / 1000 + 1));
      uint64_t drained;
      [[maybe_unused]] const auto got = ::read(wake_, &drained, sizeof drained);
      bool any = false;
      for (size_t i = 1; i < polled.size(); ++i) {
        if (polled[i].revents == 0) continue;
        any = true;
        const bool readable = polled[i].revents & (POLLIN | POLLERR | POLLHUP);
        ares_process_fd(channel_, readable ? polled[i].fd : ARES_SOCKET_BAD,
                        polled[i].revents & POLLOUT ? polled[i].fd : ARES_SOCKET_BAD);
      }
      if (!any) ares_process_fd(channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);  // its timeouts
    }
    ares_cancel(channel_);
  }

  struct Question {
    AresResolver* resolver;
    std::string host;
  };

  void ask_new_questions() {
    std::vector<std::string> hosts;
    {
      std::lock_guard lock(mutex_);
      hosts.swap(questions_);
    }
    for (auto& host : hosts) {
      ares_addrinfo_hints hints{};
      hints.ai_family = AF_UNSPEC;
      hints.ai_flags = ARES_AI_NOSORT;
      hints.ai_socktype = SOCK_STREAM;
      auto* question = new Question{this, host};
      ares_getaddrinfo(channel_, host.c_str(), nullptr, &hints, &AresResolver::answered, question);
    }
  }

  static void answered(void* context, int status, int /*timeouts*/, ares_addrinfo* info) {
    const std::unique_ptr<Question> question(static_cast<Question*>(context));
    question->resolver->store(question->host, status, info);
    if (info) ares_freeaddrinfo(info);
  }

  void store(const std::string& host, int status, const ares_addrinfo* info) {
    Addresses addresses;
    seconds ttl = kTtlMax;
    for (const auto* node = info ? info->nodes : nullptr; node; node = node->ai_next) {
      auto text = text_of(*node);
      if (text.empty() || std::find(addresses.begin(), addresses.end(), text) != addresses.end()) continue;
      addresses.push_back(std::move(text));
      ttl = std::min(ttl, seconds(node->ai_ttl));
    }
    std::shared_ptr<Answer> answer;
    {
      std::lock_guard lock(mutex_);
      answer = answers_[host];
      if (!answer) return;
      const auto now = std::chrono::steady_clock::now();
      if (!addresses.empty()) {
        answer->expires = now + std::max(ttl, kTtlMin);
        answer->result.emplace(std::move(addresses));
      } else {
        const bool absent = status == ARES_ENOTFOUND || status == ARES_ENODATA || status == ARES_SUCCESS;
        answer->expires = now + kFailureTtl;
        const Remedy silent = status == ARES_ETIMEOUT ? Remedy::kTimedOut : Remedy::kRetryLater;
        answer->result.emplace(
            fail(absent ? Remedy::kAbsent : silent, "DNS has no answer for " + host + ": " + ares_strerror(status)));
      }
    }
    answer->changed.notify_all();
  }

  ares_channel channel_;
  const int wake_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Answer>> answers_;
  std::vector<std::string> questions_;
  std::thread thread_;
};

// c-ares wants "ip:port,[ip6]:port".
std::string server_list(const std::vector<config::ListenAddress>& servers) {
  std::string list;
  for (const auto& server : servers) {
    if (!list.empty()) list += ',';
    const bool v6 = server.host.find(':') != std::string::npos;
    list += (v6 ? "[" + server.host + "]" : server.host) + ":" + std::to_string(server.port);
  }
  return list;
}

}  // namespace

Result<std::unique_ptr<Resolver>> make_resolver(const std::vector<config::ListenAddress>& servers) {
  if (const int status = ares_library_init(ARES_LIB_INIT_ALL); status != ARES_SUCCESS) {
    return fail(Remedy::kGiveUp, std::string("c-ares: ") + ares_strerror(status));
  }
  ares_options options{};
  char dns_only[] = "b";  // never the hosts file
  options.lookups = dns_only;
  options.timeout = kTimeoutMs;
  options.tries = kTries;
  ares_channel channel = nullptr;
  if (const int status = ares_init_options(&channel, &options, ARES_OPT_LOOKUPS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
      status != ARES_SUCCESS) {
    return fail(Remedy::kGiveUp, std::string("c-ares: ") + ares_strerror(status));
  }
  if (!servers.empty()) {
    const auto list = server_list(servers);
    if (const int status = ares_set_servers_ports_csv(channel, list.c_str()); status != ARES_SUCCESS) {
      ares_destroy(channel);
      return fail(Remedy::kFixInput, "resolver.servers: " + list + ": " + ares_strerror(status));
    }
  }
  return std::make_unique<AresResolver>(channel);
}

}  // namespace nezha::net
