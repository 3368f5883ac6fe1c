#include "webhook/admin.h"

#include <httplib.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "nezha/base/reuse_address.h"

namespace nezha::webhook {
namespace {

constexpr size_t kThreads = 4;
constexpr size_t kBodyBytesMax = 1024;  // nobody sends one

}  // namespace

class AdminServer::Impl {
 public:
  Impl(const Readiness& readiness, const obs::Metrics& metrics) {
    server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    server_.set_payload_max_length(kBodyBytesMax);
    server_.set_read_timeout(std::chrono::seconds(5));
    server_.set_write_timeout(std::chrono::seconds(5));
    server_.Get("/healthz", [](const httplib::Request&, httplib::Response& response) {
      response.set_content("ok\n", "text/plain");
    });
    server_.Get("/readyz", [&readiness](const httplib::Request&, httplib::Response& response) {
      response.status = readiness.ready() ? 200 : 503;
      response.set_content(readiness.text(), "text/plain");
    });
    server_.Get("/metrics", [&metrics](const httplib::Request&, httplib::Response& response) {
      response.set_content(metrics.expose(), "text/plain; version=0.0.4");
    });
  }

  ~Impl() { stop(); }

  Result<uint16_t> start(const std::string& address, uint16_t port) {
    server_.set_socket_options(reuse_address);
    const int bound = port == 0 ? server_.bind_to_any_port(address.c_str())
                                : (server_.bind_to_port(address.c_str(), port) ? port : -1);
    if (bound <= 0) {
      return fail(Remedy::kGiveUp, "cannot listen on " + address + ":" + std::to_string(port) + ": " +
                                       std::strerror(errno) + "; choose another address with --admin");
    }
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
    return static_cast<uint16_t>(bound);
  }

  void stop() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  httplib::Server server_;
  std::thread thread_;
};

AdminServer::AdminServer(const Readiness& readiness, const obs::Metrics& metrics)
    : impl_(std::make_unique<Impl>(readiness, metrics)) {}
AdminServer::~AdminServer() = default;
Result<uint16_t> AdminServer::start(const std::string& address, uint16_t port) { return impl_->start(address, port); }
void AdminServer::stop() { impl_->stop(); }

}  // namespace nezha::webhook
