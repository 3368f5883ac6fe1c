#include "cache/admin/admin.h"

#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include "nezha/base/reuse_address.h"
#include "nezha/base/text.h"
#include "nezha/pki/base64.h"

namespace nezha::cache {
namespace {

constexpr size_t kTokenBytesMin = 16;
constexpr size_t kThreads = 128;  // one for each open connection: those who say nothing must not keep a probe waiting
constexpr size_t kBodyBytesMax = 1024 * 1024;
constexpr size_t kRequestBytesMax = kBodyBytesMax + 64 * 1024;
constexpr std::chrono::seconds kAnswerTime{10};
constexpr std::chrono::milliseconds kStopLook{100};

Result<std::string> read_token(const std::string& path) {
  std::ifstream file(path);
  std::string token;
  if (!(file >> token)) return fail(Remedy::kRetryLater, path + " holds no token");
  if (token.size() < kTokenBytesMin) return fail(Remedy::kRetryLater, path + ": a token has at least 16 characters");
  return token;
}

// In a time that tells nothing of how much is right.
bool same_secret(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < b.size(); ++i) difference |= static_cast<unsigned char>((i < a.size() ? a[i] : '\0') ^ b[i]);
  return difference == 0;
}

bool is_authorised(std::string_view authorization, const std::string& token) {
  const size_t space = std::min(authorization.find(' '), authorization.size());
  const std::string_view scheme = authorization.substr(0, space), rest = trim(authorization.substr(space));
  if (iequals(scheme, "Bearer")) return same_secret(rest, token);
  if (!iequals(scheme, "Basic")) return false;
  const auto pair = pki::base64_decode(rest);
  const size_t colon = pair ? pair.value().find(':') : std::string::npos;
  return colon != std::string::npos && same_secret(std::string_view(pair.value()).substr(colon + 1), token);
}

using std::chrono::steady_clock;

// One connection, with an end to the time and the size of its request as a whole: the library bounds the wait for each
// byte, and each line.
class BoundedStream final : public httplib::Stream {
 public:
  BoundedStream(int socket, std::chrono::milliseconds request_time, const std::atomic<bool>& stopping)
      : socket_(socket), stopping_(stopping), read_until_(steady_clock::now() + request_time) {}

  bool is_readable() const override { return begin_ < end_ || wait(POLLIN, read_until_); }
  bool is_writable() const override { return wait(POLLOUT, steady_clock::now() + kAnswerTime); }

  ssize_t read(char* into, size_t size) override {
    if (begin_ == end_) {
      if (read_bytes_ > kRequestBytesMax || !is_readable()) return -1;
      const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (got <= 0) return got;
      begin_ = 0;
      end_ = static_cast<size_t>(got);
      read_bytes_ += end_;
    }
    const size_t taken = std::min(size, end_ - begin_);
    std::memcpy(into, buffer_.data() + begin_, taken);
    begin_ += taken;
    return static_cast<ssize_t>(taken);
  }

  ssize_t write(const char* bytes, size_t size) override {
    if (write_until_ == steady_clock::time_point{}) write_until_ = steady_clock::now() + kAnswerTime;
    return wait(POLLOUT, write_until_) ? ::send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT) : -1;
  }

  void get_remote_ip_and_port(std::string&, int&) const override {}  // nobody asks
  void get_local_ip_and_port(std::string&, int&) const override {}
  socket_t socket() const override { return socket_; }

 private:
  bool wait(short events, steady_clock::time_point until) const {
    while (!stopping_) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now());
      if (left.count() <= 0) return false;
      pollfd waited{socket_, events, 0};
      const int ready = ::poll(&waited, 1, static_cast<int>(std::min(left, kStopLook).count()));
      if (ready > 0) return true;
      if (ready < 0 && errno != EINTR) return false;
    }
    return false;
  }

  const int socket_;
  const std::atomic<bool>& stopping_;
  const steady_clock::time_point read_until_;
  steady_clock::time_point write_until_{};
  std::array<char, 4096> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t read_bytes_ = 0;
};

// The library's server with bounded connections of one request each: what is left of a refused body is not read as the
// next one.
class BoundedServer final : public httplib::Server {
 public:
  explicit BoundedServer(std::chrono::milliseconds request_time) : request_time_(request_time) {}
  // The library's own 5 makes connections of a burst wait for TCP's retries.
  void widen_backlog() { ::listen(svr_sock_, kThreads); }
  void stop_now() {
    stopping_ = true;
    stop();
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    BoundedStream stream(socket, request_time_, stopping_);
    bool closed = false;
    const bool done = process_request(stream, true, closed, nullptr);
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return done;
  }

  const std::chrono::milliseconds request_time_;
  std::atomic<bool> stopping_{false};
};

class HttplibAdmin final : public AdminServer {
 public:
  HttplibAdmin(std::string token_path, AdminCallbacks callbacks, std::chrono::milliseconds request_time)
      : callbacks_(std::move(callbacks)), token_path_(std::move(token_path)), server_(request_time) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_payload_max_length(kBodyBytesMax);
    // Before any body is read: the library bounds neither compressed nor chunked ones.
    server_.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      return may_read_body(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                              : httplib::Server::HandlerResponse::Handled;
    });
    server_.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("ok\n", "text/plain");
    });
    server_.Get("/readyz", [this](const httplib::Request&, httplib::Response& response) {
      const std::string reason = callbacks_.not_ready_because();
      if (!reason.empty()) response.status = 503;
      response.set_content(reason.empty() ? "ready\n" : reason + "\n", "text/plain");
    });
    server_.Get("/metrics", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(callbacks_.metrics(), "text/plain; version=0.0.4");
    });
    server_.Post("/purge", [this](const httplib::Request& request, httplib::Response& response) {
      change(request, response, callbacks_.purge);
    });
    server_.Post("/events/s3", [this](const httplib::Request& request, httplib::Response& response) {
      change(request, response, callbacks_.take_events);
    });
    server_.Post("/prefetch", [this](const httplib::Request& request, httplib::Response& response) {
      const Result<std::string> started = callbacks_.prefetch(request.body);
      if (!started)
        return refuse(response, started.error().remedy == Remedy::kFixInput ? 400 : 503, started.error().message);
      response.status = 202;
      response.set_content(started.value(), "application/json");
    });
    server_.Get("/prefetch", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(callbacks_.prefetch_report(), "application/json");
    });
  }

  ~HttplibAdmin() override {
    server_.stop_now();
    if (thread_.joinable()) thread_.join();
  }

  Result<void> start(const config::ListenAddress& address) {
    server_.set_socket_options(reuse_address);
    port_ = address.port;
    if (port_ == 0) {
      const int chosen = server_.bind_to_any_port(address.host);
      if (chosen <= 0) return fail(Remedy::kFixInput, "listen.admin: cannot bind " + address.host);
      port_ = static_cast<uint16_t>(chosen);
    } else if (!server_.bind_to_port(address.host, port_)) {
      return fail(Remedy::kFixInput, "listen.admin: cannot bind " + address.host + ":" + std::to_string(port_) + ": " +
                                         std::strerror(errno));
    }
    server_.widen_backlog();
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    return ok();
  }

  uint16_t port() const override { return port_; }

 private:
  static void refuse(httplib::Response& response, int status, const std::string& reason) {
    response.status = status;
    response.set_content(reason + "\n", "text/plain");
  }

  // False: it was refused.
  bool may_read_body(const httplib::Request& request, httplib::Response& response) const {
    const auto no = [&](int status, const std::string& reason) {
      refuse(response, status, reason);
      return false;
    };
    const bool reads = request.method == "GET" || request.method == "HEAD" || request.method == "OPTIONS";
    if (reads && request.path != "/prefetch") return true;  // that one names what is in buckets
    const bool known = request.path == "/purge" || request.path == "/events/s3" || request.path == "/prefetch";
    if (!known || (!reads && request.method != "POST")) return no(404, "there is nothing here to change");
    if (token_path_.empty()) return no(403, "not allowed: listen.adminTokenFile names no token");
    const auto token = read_token(token_path_);
    if (!token) return no(503, token.error().message);
    if (!is_authorised(request.get_header_value("Authorization"), token.value())) {
      response.set_header("WWW-Authenticate", "Bearer");
      return no(401, "this needs the token of listen.adminTokenFile: Authorization: Bearer TOKEN");
    }
    if (request.has_header("Transfer-Encoding")) return no(411, "the body needs a Content-Length");
    if (request.has_header("Content-Encoding")) return no(415, "the body must not be compressed");
    const auto length = parse_decimal(request.get_header_value("Content-Length"));
    return !length || *length <= kBodyBytesMax || no(413, "the body has more than 1 MiB");
  }

  void change(const httplib::Request& request, httplib::Response& response,
              const std::function<Result<std::string>(std::string_view)>& what) const {
    const Result<std::string> done = what(request.body);
    if (!done) return refuse(response, done.error().remedy == Remedy::kFixInput ? 400 : 500, done.error().message);
    response.set_content(done.value(), "application/json");
  }

  AdminCallbacks callbacks_;
  const std::string token_path_;
  BoundedServer server_;
  std::thread thread_;
  uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<AdminServer>> start_admin_server(const config::ListenAddress& address, std::string token_path,
                                                        AdminCallbacks callbacks,
                                                        std::chrono::milliseconds request_time) {
  auto server = std::make_unique<HttplibAdmin>(std::move(token_path), std::move(callbacks), request_time);
  NEZHA_TRY(server->start(address));
  return std::unique_ptr<AdminServer>(std::move(server));
}

bool is_ready(uint16_t port) {
  httplib::Client client("127.0.0.1", port);
  client.set_connection_timeout(2);
  client.set_read_timeout(2);
  const auto answer = client.Get("/readyz");
  return answer && answer->status == 200;
}

}  // namespace nezha::cache
