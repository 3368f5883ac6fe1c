#include "cache/admin/admin.h"

#include <httplib.h>

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

class HttplibAdmin final : public AdminServer {
 public:
  HttplibAdmin(std::string token_path, AdminCallbacks callbacks)
      : callbacks_(std::move(callbacks)), token_path_(std::move(token_path)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(4); };
    server_.set_read_timeout(5);
    server_.set_payload_max_length(1024 * 1024);
    server_.set_keep_alive_max_count(1);  // what is left of a refused body is not read as the next request
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
    server_.stop();
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
    return !request.has_header("Content-Encoding") || no(415, "the body must not be compressed");
  }

  void change(const httplib::Request& request, httplib::Response& response,
              const std::function<Result<std::string>(std::string_view)>& what) const {
    const Result<std::string> done = what(request.body);
    if (!done) return refuse(response, done.error().remedy == Remedy::kFixInput ? 400 : 500, done.error().message);
    response.set_content(done.value(), "application/json");
  }

  AdminCallbacks callbacks_;
  const std::string token_path_;
  httplib::Server server_;
  std::thread thread_;
  uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<AdminServer>> start_admin_server(const config::ListenAddress& address, std::string token_path,
                                                        AdminCallbacks callbacks) {
  auto server = std::make_unique<HttplibAdmin>(std::move(token_path), std::move(callbacks));
  NEZHA_TRY(server->start(address));
  return std::unique_ptr<AdminServer>(std::move(server));
}

}  // namespace nezha::cache
