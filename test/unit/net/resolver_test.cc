// The resolver against a scripted DNS server on loopback: never the hosts file, one question per name, failures kept.
#include "nezha/net/resolver.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <thread>

#include "nezha/net/loop.h"
#include "test/support/event.h"

namespace nezha::net {
namespace {

using test::Event;

// Answers A questions from a table; AAAA questions and unknown names get an empty answer or NXDOMAIN.
class DnsServer {
 public:
  DnsServer() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    socklen_t size = sizeof address;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~DnsServer() {
    ::shutdown(fd_, SHUT_RDWR);
    thread_.join();
    ::close(fd_);
  }
  uint16_t port() const { return port_; }
  size_t questions(const std::string& name) {
    std::lock_guard lock(mutex_);
    return asked_[name];
  }

 private:
  void serve() {
    unsigned char packet[1500];
    for (;;) {
      sockaddr_in from{};
      socklen_t from_size = sizeof from;
      const ssize_t size = ::recvfrom(fd_, packet, sizeof packet, 0, reinterpret_cast<sockaddr*>(&from), &from_size);
      if (size <= 12) return;
      const std::string answer = answer_to(std::string(reinterpret_cast<char*>(packet), static_cast<size_t>(size)));
      ::sendto(fd_, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), from_size);
    }
  }

  std::string answer_to(std::string question) {
    std::string name;
    size_t at = 12;
    while (question[at] != 0) {
      name += question.substr(at + 1, static_cast<size_t>(question[at])) + ".";
      at += static_cast<size_t>(question[at]) + 1;
    }
    const bool is_a = question[at + 2] == 1;
    question.resize(at + 5);  // without additional records
    question[10] = question[11] = 0;
    std::lock_guard lock(mutex_);
    if (is_a) ++asked_[name];
    const auto found = names_.find(name);
    question[2] = static_cast<char>(0x84);
    question[3] = static_cast<char>(found == names_.end() ? 0x83 : 0x80);
    if (found == names_.end() || !is_a) return question;
    question[7] = static_cast<char>(found->second.size());
    for (const char* ip : found->second) {
      in_addr address{};
      ::inet_pton(AF_INET, ip, &address);
      question += std::string("\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04", 12);
      question.append(reinterpret_cast<const char*>(&address), 4);
    }
    return question;
  }

  const std::map<std::string, std::vector<const char*>> names_ = {{"data.example.", {"192.0.2.1", "192.0.2.2"}},
                                                                  {"localhost.", {"192.0.2.9"}}};
  int fd_;
  uint16_t port_ = 0;
  std::mutex mutex_;
  std::map<std::string, size_t> asked_;
  std::thread thread_;
};

using Answer = std::optional<Result<std::vector<std::string>>>;

Task<> resolve_into(Resolver& resolver, std::string name, Answer& into, Event& done) {
  into.emplace(co_await resolver.resolve(std::move(name), true));
  done.set();
}

class ResolverTest : public testing::Test {
 protected:
  void TearDown() override {
    loop_->stop();
    thread_.join();
    loop_->run_until([this] { return gate_.size() == 0; }, std::chrono::steady_clock::now() + test::kWatchdog);
  }
  Result<std::vector<std::string>> resolve(const std::string& name) {
    Answer answer;
    Event done;
    loop_->post([&] { gate_.spawn(resolve_into(*resolver_, name, answer, done)); });
    EXPECT_TRUE(done.wait());
    return *answer;
  }

  DnsServer server_;
  std::unique_ptr<Resolver> resolver_ = std::move(make_resolver({{"127.0.0.1", server_.port()}}).value());
  std::unique_ptr<Loop> loop_ = make_loop();
  Gate gate_{loop_->executor()};
  std::thread thread_{[this] { loop_->run(); }};
};

TEST_F(ResolverTest, AllAddressesAndOneQuestion) {
  for (int i = 0; i < 3; ++i) {
    const auto got = resolve("data.example");
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got.value(), (std::vector<std::string>{"192.0.2.1", "192.0.2.2"}));
  }
  EXPECT_EQ(server_.questions("data.example."), 1u) << "kept for its time to live";
}

TEST_F(ResolverTest, TheHostsFileIsNeverRead) {
  const auto got = resolve("localhost");
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got.value(), std::vector<std::string>{"192.0.2.9"}) << "the hosts file says 127.0.0.1";
}

TEST_F(ResolverTest, AddressesNeedNoQuestion) {
  EXPECT_EQ(resolve("127.0.0.1").value(), std::vector<std::string>{"127.0.0.1"});
  EXPECT_EQ(resolve("::1").value(), std::vector<std::string>{"::1"});
}

TEST_F(ResolverTest, UnknownNamesAreAbsentAndKeptForAWhile) {
  for (int i = 0; i < 3; ++i) {
    const auto got = resolve("nothing.example");
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().remedy, Remedy::kAbsent);
    EXPECT_NE(got.error().message.find("nothing.example"), std::string::npos);
  }
  EXPECT_EQ(server_.questions("nothing.example."), 1u);
}

}  // namespace
}  // namespace nezha::net
