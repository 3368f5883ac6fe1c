#include "src/k8s/client/transport.h"

#include <httplib.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <atomic>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <optional>
#include <utility>

#include "nezha/base/text.h"
#include "src/k8s/client/sigpipe.h"

namespace nezha::k8s {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A kept connection older than this is opened anew: the API server may have closed it, which a write would not survive.
constexpr std::chrono::seconds kIdleMax{20};
constexpr size_t kTokenBytesMax = 64 * 1024;

struct Url {
  bool tls = false;
  std::string host;  // IPv6 without brackets
  int port = 0;
};

std::optional<Url> parse_url(std::string_view text) {
  Url url;
  if (text.starts_with("https://"))
    url.tls = true;
  else if (!text.starts_with("http://"))
    return std::nullopt;
  text.remove_prefix(url.tls ? 8 : 7);
  while (text.ends_with('/')) text.remove_suffix(1);
  std::string_view host = text;
  std::string_view port = url.tls ? "443" : "80";
  const size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && text.find(']', colon) == std::string_view::npos) {
    host = text.substr(0, colon);
    port = text.substr(colon + 1);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const auto number = parse_decimal(port);
  if (host.empty() || host.find('/') != std::string_view::npos || !number || *number == 0 || *number > 65535) {
    return std::nullopt;
  }
  url.host = std::string(host);
  url.port = static_cast<int>(*number);
  return url;
}

Result<std::string> read_token(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(Remedy::kRetryLater, "cannot read the token file " + path);
  std::string token(kTokenBytesMax, '\0');
  file.read(token.data(), static_cast<std::streamsize>(token.size()));
  token.resize(static_cast<size_t>(file.gcount()));
  const size_t end = token.find_first_of("\r\n");
  if (end != std::string::npos) token.resize(end);
  if (token.empty()) return fail(Remedy::kRetryLater, "the token file " + path + " is empty");
  return token;
}

// Changes when the file is replaced or rewritten.
std::pair<uint64_t, int64_t> file_identity(const std::string& path) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return {0, 0};
  return {info.st_ino, static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

// A watch may be silent for minutes, so only the kernel can notice that the server's machine is gone.
void enable_keepalive(int socket) {
  const auto set = [socket](int level, int name, int value) {
    ::setsockopt(socket, level, name, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

std::string words_of(httplib::Error error) {
  switch (error) {
    case httplib::Error::Connection:
      return "cannot connect";
    case httplib::Error::ConnectionTimeout:
      return "cannot connect in time";
    case httplib::Error::Read:
      return "the connection was cut, or the answer did not come in time";
    case httplib::Error::Write:
      return "the connection was cut while the request was sent";
    case httplib::Error::SSLConnection:
      return "the TLS handshake failed";
    case httplib::Error::SSLLoadingCerts:
      return "the CA file cannot be read as PEM certificates";
    case httplib::Error::SSLServerVerification:
      return "the server's certificate is not trusted by the CA file";
    default:
      return httplib::to_string(error);
  }
}

}  // namespace

std::string percent_encode(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '_' || c == '.' || c == '~';
    if (plain)
      out += c;
    else
      out += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out;
}

class Transport::Impl {
 public:
  Impl(ApiServer server, TransportLimits limits) : server_(std::move(server)), limits_(limits) {}

  Result<WireAnswer> send(const WireRequest& request, const Receiver& receiver) {
    std::lock_guard one_at_a_time(request_mutex_);
    const NoSigpipe no_sigpipe;
    NEZHA_TRY(const bool reused, ready_client());
    NEZHA_TRY(httplib::Headers headers, make_headers());
    httplib::Request wire;
    wire.method = request.method;
    wire.path = request.target;
    wire.headers = std::move(headers);
    wire.body = request.body;
    if (!request.content_type.empty()) wire.headers.emplace("Content-Type", request.content_type);
    auto result = exchange(wire, receiver, reused);
    last_used_ = SteadyClock::now();
    return result;
  }

  void stop() {
    stopped_ = true;
    std::unique_lock lock(client_mutex_);
    // Repeated because a request that is still connecting has no socket to cut yet.
    while (in_flight_) {
      if (client_) client_->stop();
      idle_.wait_for(lock, std::chrono::milliseconds(10));
    }
  }

 private:
  // Makes the connection object when there is none or the CA file changed; true: it holds a connection from before.
  Result<bool> ready_client() {
    const auto ca_identity = file_identity(server_.ca_file);
    const bool fresh_enough = SteadyClock::now() - last_used_ < kIdleMax;
    std::lock_guard lock(client_mutex_);
    if (client_ && ca_identity == ca_identity_) {
      if (!fresh_enough) client_->stop();
      return client_->is_socket_open() != 0;
    }
    const auto url = parse_url(server_.url);
    if (!url) return fail(Remedy::kFixInput, "\"" + server_.url + "\" is no URL of the form https://HOST:PORT");
    if (url->tls) {
      auto tls = std::make_unique<httplib::SSLClient>(url->host, url->port);
      if (!server_.ca_file.empty()) tls->set_ca_cert_path(server_.ca_file);
      tls->enable_server_certificate_verification(true);
      client_ = std::move(tls);
    } else {
      client_ = std::make_unique<httplib::ClientImpl>(url->host, url->port);
    }
    client_->set_keep_alive(true);
    client_->set_url_encode(false);
    client_->set_tcp_nodelay(true);
    client_->set_socket_options(enable_keepalive);
    client_->set_connection_timeout(limits_.connect);
    client_->set_read_timeout(limits_.silence);
    client_->set_write_timeout(limits_.silence);
    ca_identity_ = ca_identity;
    return false;
  }

  Result<httplib::Headers> make_headers() const {
    httplib::Headers headers{{"Accept", "application/json"}, {"User-Agent", "nezha"}};
    if (server_.token_file.empty()) return headers;
    NEZHA_TRY(const std::string token, read_token(server_.token_file));
    headers.emplace("Authorization", "Bearer " + token);
    return headers;
  }

  Result<WireAnswer> exchange(httplib::Request& wire, const Receiver& receiver, bool reused) {
    WireAnswer answer;
    const char* broken = nullptr;
    wire.response_handler = [&](const httplib::Response& response) {
      answer.status = response.status;
      return !stopped_;
    };
    wire.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      if (stopped_) return false;
      if (receiver && answer.status == 200) return receiver({data, size});
      if (answer.body.size() + size > limits_.body_bytes_max) {
        broken = "the answer is larger than the limit";
        return false;
      }
      answer.body.append(data, size);
      return true;
    };
    const std::string call = wire.method + " " + server_.url + wire.path;
    const httplib::Error error = run(wire);
    if (error == httplib::Error::Success) return answer;
    if (stopped_) return fail(Remedy::kRetryLater, call + ": stopped");
    if (broken != nullptr) return fail(Remedy::kRetryLater, call + ": " + broken);
    const bool no_answer = answer.status == 0 && error != httplib::Error::Connection;
    return fail(reused && no_answer ? Remedy::kRetryHere : Remedy::kRetryLater, call + ": " + words_of(error));
  }

  httplib::Error run(const httplib::Request& wire) {
    httplib::ClientImpl* client = nullptr;
    {
      std::lock_guard lock(client_mutex_);
      if (stopped_) return httplib::Error::Canceled;
      in_flight_ = true;
      client = client_.get();
    }
    const auto result = client->send(wire);
    std::lock_guard lock(client_mutex_);
    in_flight_ = false;
    idle_.notify_all();
    if (!result) client->stop();  // never reuse a connection whose answer was not read to its end
    return result.error();
  }

  const ApiServer server_;
  const TransportLimits limits_;
  std::mutex request_mutex_;
  SteadyClock::time_point last_used_{};
  std::atomic<bool> stopped_{false};

  std::mutex client_mutex_;  // guards what follows
  std::condition_variable idle_;
  bool in_flight_ = false;
  std::unique_ptr<httplib::ClientImpl> client_;
  std::pair<uint64_t, int64_t> ca_identity_{};
};

Transport::Transport(ApiServer server, TransportLimits limits)
    : impl_(std::make_unique<Impl>(std::move(server), limits)) {}
Transport::~Transport() = default;

Result<WireAnswer> Transport::send(const WireRequest& request, const Receiver& receiver) {
  return impl_->send(request, receiver);
}

void Transport::stop() { impl_->stop(); }

}  // namespace nezha::k8s
