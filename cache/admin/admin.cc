#include "cache/admin/admin.h"

#include <httplib.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "nezha/base/reuse_address.h"

namespace nezha::cache {
namespace {

class HttplibAdmin final : public AdminServer {
 public:
  explicit HttplibAdmin(AdminCallbacks callbacks) : callbacks_(std::move(callbacks)) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(4); };
    server_.set_read_timeout(5);
    server_.set_payload_max_length(1024 * 1024);
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
  AdminCallbacks callbacks_;
  httplib::Server server_;
  std::thread thread_;
  uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<AdminServer>> start_admin_server(const config::ListenAddress& address,
                                                        AdminCallbacks callbacks) {
  auto server = std::make_unique<HttplibAdmin>(std::move(callbacks));
  NEZHA_TRY(server->start(address));
  return std::unique_ptr<AdminServer>(std::move(server));
}

}  // namespace nezha::cache
