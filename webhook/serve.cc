#include "webhook/serve.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "nezha/base/check.h"
#include "nezha/base/limits.h"
#include "nezha/base/reuse_address.h"
#include "nezha/base/text.h"
#include "webhook/admit.h"
#include "webhook/certificate_chooser.h"
#include "webhook/connection_threads.h"
#include "webhook/connections.h"
#include "webhook/review_metrics.h"

namespace nezha::webhook {
namespace {

constexpr int kBacklog = 1024;  // the library's own 5 makes bursts of new connections wait for TCP retries

struct Route {
  const char* path;
  Entry entry;
};
constexpr Route kRoutes[] = {{"/mutate", Entry::kPod},
                             {"/mutate/namespace", Entry::kNamespace},
                             {"/mutate/selector", Entry::kSelector},
                             {"/mutate/ancestor", Entry::kAncestor}};

// The library's server, with its listening socket in reach.
class Edge final : public httplib::SSLServer {
 public:
  using SSLServer::SSLServer;
  // The library closes the socket itself once it listens.
  void close_unserved() { ::close(svr_sock_.exchange(INVALID_SOCKET)); }
  bool widen_backlog() const { return ::listen(svr_sock_, kBacklog) == 0; }
};

void set_error(httplib::Response& response, int status, std::string_view message) {
  response.status = status;
  response.set_content(error_body(message), "application/json");
}

bool is_json(const httplib::Request& request) {
  const auto type = request.get_header_value("Content-Type");
  return iequals(trim(std::string_view(type).substr(0, type.find(';'))), "application/json");
}

const char* default_message(int status) {
  switch (status) {
    case 400:
      return "the HTTP request is malformed";
    case 404:
      return "no such path; reviews go to /mutate, /mutate/namespace, /mutate/selector or /mutate/ancestor";
    case 405:
      return "reviews are sent by POST";
    case 414:
      return "the request's target is too long";
    default:
      return "the request failed";
  }
}

bool is_review_path(const std::string& path) {
  for (const auto& route : kRoutes)
    if (path == route.path) return true;
  return false;
}

}  // namespace

class AdmissionServer::Impl {
 public:
  Impl(ServeSettings settings, const PolicyStore& policies, const CertificateSource& certificates, const Clock& clock,
       obs::Metrics& metrics, obs::Log& log)
      : settings_(std::move(settings)),
        policies_(policies),
        clock_(clock),
        log_(log),
        metrics_(metrics),
        chooser_(certificates, log),
        server_([this](SSL_CTX& context) { return set_up(context); }) {
    NEZHA_CHECK(server_.is_valid(), "OpenSSL has no context");
    set_limits();
    add_routes();
    add_hooks();
  }

  ~Impl() {
    if (port_ != 0 && !listening_) server_.close_unserved();
  }

  Result<> bind() {
    const bool any = settings_.port == 0;
    const int port = any ? server_.bind_to_any_port(settings_.address)
                     : server_.bind_to_port(settings_.address, settings_.port) ? settings_.port
                                                                               : -1;
    if (port <= 0 || !server_.widen_backlog())
      return fail(Remedy::kGiveUp, "cannot listen on " + settings_.address + ':' + std::to_string(settings_.port) +
                                       " for admission reviews: " + std::strerror(errno));
    port_ = static_cast<uint16_t>(port);
    return ok();
  }

  uint16_t port() const {
    NEZHA_CHECK(port_ != 0, "port() before bind()");
    return port_;
  }

  void run() {
    NEZHA_CHECK(port_ != 0, "run() before bind()");
    std::unique_lock lock(mutex_);
    if (stops_ > 0) return;
    std::thread listener([this] { listen(); });
    changed_.wait(lock, [this] { return stops_ > 0 || ended_; });
    draining_ = true;
    changed_.wait_for(lock, settings_.drain_grace, [this] { return stops_ > 1 || ended_; });
    changed_.wait(lock, [this] { return listening_ || ended_; });
    const bool ended = ended_;
    lock.unlock();
    if (!ended) server_.stop();
    listener.join();
  }

  void stop() {
    {
      std::lock_guard lock(mutex_);
      ++stops_;
    }
    changed_.notify_all();
  }

 private:
  bool set_up(SSL_CTX& context) {
    chooser_.attach(context);
    connections_.watch(context);
    SSL_CTX_set_options(&context, SSL_OP_NO_RENEGOTIATION);
    return SSL_CTX_set_min_proto_version(&context, TLS1_2_VERSION) == 1;
  }

  void set_limits() {
    using std::chrono::duration_cast;
    server_.set_socket_options(reuse_address);
    server_.set_tcp_nodelay(true);
    server_.set_keep_alive_max_count(1'000'000'000);
    server_.set_keep_alive_timeout(static_cast<time_t>(settings_.idle_timeout.count()));
    server_.set_read_timeout(settings_.read_timeout);
    server_.set_write_timeout(settings_.read_timeout);
    server_.new_task_queue = [this]() -> httplib::TaskQueue* {
      {
        std::lock_guard lock(mutex_);
        listening_ = true;
      }
      changed_.notify_all();
      return new ConnectionThreads(
          settings_.connections_max, [this] { connections_.make_room(); }, [this] { connections_.close_idle(); });
    };
  }

  void add_routes() {
    for (const auto& route : kRoutes) {
      const Entry entry = route.entry;
      server_.Post(route.path, [this, entry](const auto& request, auto& response, const auto& reader) {
        answer(entry, request, response, reader);
      });
    }
    server_.Get("/healthz", [](const auto&, auto& response) { response.set_content("ok\n", "text/plain"); });
    // A body that nobody wants is read all the same, within the limit: the next request stands behind it.
    const auto refuse = [this](const httplib::Request& request, httplib::Response& response,
                               const httplib::ContentReader& reader) {
      read_body(reader, response);
      if (response.status == -1) response.status = is_review_path(request.path) ? 405 : 404;
    };
    server_.Post(".*", refuse);
    server_.Put(".*", refuse);
    server_.Patch(".*", refuse);
    server_.Delete(".*", refuse);
  }

  void add_hooks() {
    using Outcome = httplib::Server::HandlerResponse;
    server_.set_pre_routing_handler([this](const auto& request, auto& response) {
      connections_.begin_request(request.ssl);
      metrics_.begin_request();
      return check_head(request, response) ? Outcome::Unhandled : Outcome::Handled;
    });
    server_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (response.status == 404 && is_review_path(request.path)) response.status = 405;
      if (response.status == 405) response.set_header("Allow", "POST");
      if (response.body.empty()) set_error(response, response.status, default_message(response.status));
    });
    server_.set_post_routing_handler([this](const auto&, auto& response) {
      if (!draining_ || response.has_header("Connection")) return;
      response.headers.erase("Keep-Alive");
      response.set_header("Connection", "close");
    });
    server_.set_logger([this](const auto& request, const auto& response) {
      if (!request.ssl) return;  // the head was malformed and never routed
      if (response.get_header_value("Connection") == "close")
        connections_.close_after_this(request.ssl);
      else
        connections_.end_request(request.ssl);
      metrics_.end_request();
    });
  }

  void listen() {
    if (!server_.listen_after_bind()) log_.error("the admission server stopped listening");
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }

  // False with an answer for requests whose body could not be told from the next request, or would be unpacked.
  static bool check_head(const httplib::Request& request, httplib::Response& response) {
    const bool sends_body = request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
    if (request.method == "PRI")
      set_error(response, 405, default_message(405));
    else if (request.has_header("Content-Encoding"))
      set_error(response, 415, "Content-Encoding is not supported");
    else if (sends_body && !request.has_header("Content-Length") && !request.has_header("Transfer-Encoding"))
      set_error(response, 411, "Content-Length is missing");
    else
      return true;
    response.set_header("Connection", "close");
    return false;
  }

  // The body, or nothing with the error in the response. A body a little over the limit is read to its end, so that
  // the client sees the answer; a larger one ends the connection.
  std::optional<std::string> read_body(const httplib::ContentReader& reader, httplib::Response& response) {
    constexpr size_t kMax = limits::kReviewBytesMax;
    const auto deadline = clock_.now() + settings_.request_timeout;
    std::string body;
    size_t received = 0;
    bool late = false;
    const bool whole = reader([&](const char* data, size_t bytes) {
      received += bytes;
      if (received <= kMax) body.append(data, bytes);
      late = clock_.now() > deadline;
      return !late && received <= 2 * kMax;
    });
    if (whole && received <= kMax) {
      response.status = -1;
      return body;
    }
    if (!whole) response.set_header("Connection", "close");
    if (received > kMax)
      set_error(response, 413, "the review has more than " + std::to_string(kMax) + " bytes");
    else if (late)
      set_error(response, 408, "the request took too long to arrive");
    else
      set_error(response, 400, "the request's body is incomplete");
    return std::nullopt;
  }

  void answer(Entry entry, const httplib::Request& request, httplib::Response& response,
              const httplib::ContentReader& reader) {
    const auto body = read_body(reader, response);
    if (!body) return metrics_.count(entry, "refused");
    if (!is_json(request)) {
      set_error(response, 415, "a review is sent as Content-Type: application/json");
      return metrics_.count(entry, "refused");
    }
    const auto begin = clock_.now();
    const Answer answer = admit(entry, *body, *policies_.current());
    metrics_.observe(entry, clock_.now() - begin);
    metrics_.count(entry, answer.result);
    if (answer.untrusted && settings_.on_untrusted) settings_.on_untrusted(Namespace(answer.name_space));
    const auto level = answer.result == "error" || answer.http_status != 200 ? obs::Level::kWarning : obs::Level::kInfo;
    log_.write(level, "review",
               {{"path", request.path},
                {"namespace", answer.name_space},
                {"pod", answer.pod},
                {"result", answer.result},
                {"rules", answer.rules},
                {"note", answer.note}});
    response.status = answer.http_status;
    response.set_content(answer.body, "application/json");
  }

  const ServeSettings settings_;
  const PolicyStore& policies_;
  const Clock& clock_;
  obs::Log& log_;
  ReviewMetrics metrics_;
  CertificateChooser chooser_;
  OpenConnections connections_;
  Edge server_;  // after what its context points at
  uint16_t port_ = 0;

  std::atomic<bool> draining_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  int stops_ = 0;
  bool listening_ = false;
  bool ended_ = false;
};

AdmissionServer::AdmissionServer(ServeSettings settings, const PolicyStore& policies,
                                 const CertificateSource& certificates, const Clock& clock, obs::Metrics& metrics,
                                 obs::Log& log)
    : impl_(std::make_unique<Impl>(std::move(settings), policies, certificates, clock, metrics, log)) {}
AdmissionServer::~AdmissionServer() = default;
Result<> AdmissionServer::bind() { return impl_->bind(); }
uint16_t AdmissionServer::port() const { return impl_->port(); }
void AdmissionServer::run() { impl_->run(); }
void AdmissionServer::stop() { impl_->stop(); }

}  // namespace nezha::webhook
