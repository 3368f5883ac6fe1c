#include "test/support/cache_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "nezha/base/check.h"
#include "nezha/base/text.h"
#include "test/support/event.h"
#include "test/support/raw_client.h"

extern char** environ;

namespace nezha::test {
namespace {

const std::string kListen =
    "listen: {http: [\"127.0.0.1:0\"], https: [\"127.0.0.1:0\"], relay: [\"127.0.0.1:0\"], admin: \"127.0.0.1:0\"}\n";

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

// The number at the end of the first whole line with this text.
uint16_t port_in(const std::string& log, const std::string& text) {
  const size_t begin = log.find(text);
  const size_t end = begin == std::string::npos ? begin : log.find('\n', begin);
  if (end == std::string::npos) return 0;
  const size_t digits = log.find_last_not_of("0123456789", end - 1) + 1;
  return static_cast<uint16_t>(std::atoi(log.c_str() + digits));
}

}  // namespace

CacheProcess::CacheProcess(const std::string& configuration, std::vector<std::string> environment,
                           std::vector<std::string> arguments, std::vector<std::string> by)
    : config_path_(folder_.path() + "/cache.yaml"),
      log_path_(folder_.path() + "/log"),
      environment_(std::move(environment)),
      arguments_(std::move(arguments)),
      by_(std::move(by)) {
  configure(configuration);
}

void CacheProcess::configure(const std::string& configuration) {
  const std::string next = config_path_ + ".next";  // whoever reads it sees the old file or the new one
  std::ofstream(next) << kListen << configuration;
  std::filesystem::rename(next, config_path_);
}

CacheProcess::~CacheProcess() {
  if (process_ > 0) (void)kill();
}

void CacheProcess::launch() {
  NEZHA_CHECK(process_ < 0, "one process at a time");
  std::filesystem::remove(log_path_);
  // All that allocates comes before fork(): other threads may hold the allocator's locks.
  std::vector<char*> environment;
  for (const auto& entry : environment_) environment.push_back(const_cast<char*>(entry.c_str()));
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  std::vector<std::string> words = by_;
  words.insert(words.end(), {NEZHA_CACHE_PROGRAM, "--config", config_path_, "--threads", "2"});
  if (std::find(arguments_.begin(), arguments_.end(), "--drain-seconds") == arguments_.end())
    words.insert(words.end(), {"--drain-seconds", "30"});
  words.insert(words.end(), arguments_.begin(), arguments_.end());
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  NEZHA_CHECK(process_ >= 0, "fork");
  if (process_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int log = ::open(log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (log < 0 || ::getppid() != parent || ::dup2(log, STDERR_FILENO) < 0) ::_exit(126);
  ::execve(arguments[0], arguments.data(), environment.data());
  ::_exit(127);
}

bool CacheProcess::wait_ready() {
  bool ended = false;
  const bool ready = eventually([&] {
    siginfo_t info{};
    ended = ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid != 0;
    if (ended) return true;
    const std::string text = log();
    admin_port_ = port_in(text, "admin port port=");
    if (admin_port_ == 0) return false;
    http_port_ = port_in(text, "serving http address=");
    https_port_ = port_in(text, "serving or relaying tls by server name address=");
    relay_port_ = port_in(text, " info relaying tls by server name address=");
    return true;
  });
  return ready && !ended;
}

int CacheProcess::wait() {
  int status = 0;
  NEZHA_CHECK(::waitpid(process_, &status, 0) == process_, "a child is waited for once");
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int CacheProcess::kill() {
  ::kill(process_, SIGKILL);
  return wait();
}

int CacheProcess::stop() {
  ::kill(process_, SIGTERM);
  return wait();
}

double CacheProcess::metric(const std::string& series) const {
  RawClient client(try_connect_loopback(admin_port_));
  if (!client.socket().open()) return -1;
  const ClientAnswer answer = client.ask("GET /metrics HTTP/1.1\r\nHost: admin\r\nConnection: close\r\n\r\n");
  for (const auto line : split(answer.body, '\n')) {
    if (line.starts_with(series + " ")) return std::stod(std::string(line.substr(series.size() + 1)));
  }
  return 0;
}

size_t CacheProcess::descriptors() const { return open_descriptors(std::to_string(process_)); }
size_t CacheProcess::sockets() const { return open_sockets(std::to_string(process_)); }

uint64_t CacheProcess::private_bytes() const {
  const std::string status = text_of("/proc/" + std::to_string(process_) + "/status");
  const std::string name = "RssAnon:";
  const size_t at = status.find(name);
  return at == std::string::npos ? 0 : std::strtoull(status.c_str() + at + name.size(), nullptr, 10) * 1024;
}

std::string CacheProcess::log() const { return text_of(log_path_); }

}  // namespace nezha::test
