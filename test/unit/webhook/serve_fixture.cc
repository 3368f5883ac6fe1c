#include "test/unit/webhook/serve_fixture.h"

#include <arpa/inet.h>
#include <openssl/pem.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "nezha/base/text.h"
#include "nezha/pki/certificates.h"
#include "test/support/policies.h"

namespace nezha::test {

webhook::KeyPair make_key_pair(std::string* ca_pem) {
  const auto now = SystemClock().wall();
  const pki::Validity validity{now - std::chrono::hours(1), now + std::chrono::hours(24)};
  const auto ca = pki::make_ca("test", validity).value();
  const auto leaf = pki::make_leaf(ca, {"localhost"}, validity).value();
  if (ca_pem) *ca_pem = ca.certificate_pem;
  return {leaf.certificate_pem, leaf.key_pem};
}

TlsClient::TlsClient(uint16_t port)
    : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free), ssl_(nullptr, SSL_free) {
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval timeout{20, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  ::setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
  ssl_.reset(SSL_new(context_.get()));
  SSL_set_fd(ssl_.get(), socket_);
  ok_ = SSL_connect(ssl_.get()) == 1;
}

TlsClient::~TlsClient() {
  if (ok_) SSL_shutdown(ssl_.get());
  ssl_.reset();
  ::close(socket_);
}

std::string TlsClient::peer_certificate_pem() const {
  X509* certificate = SSL_get1_peer_certificate(ssl_.get());
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<size_t>(bytes));
  BIO_free(bio);
  X509_free(certificate);
  return pem;
}

int TlsClient::certificates_sent() const { return sk_X509_num(SSL_get_peer_cert_chain(ssl_.get())); }

void TlsClient::send(const std::string& bytes) {
  size_t sent = 0;
  while (ok_ && sent < bytes.size()) {
    const int n =
        SSL_write(ssl_.get(), bytes.data() + sent, static_cast<int>(std::min<size_t>(bytes.size() - sent, 16384)));
    if (n <= 0)
      ok_ = false;
    else
      sent += static_cast<size_t>(n);
  }
}

bool TlsClient::read_more() {
  char buffer[16384];
  const int n = SSL_read(ssl_.get(), buffer, sizeof buffer);
  if (n <= 0) return ok_ = false;
  received_.append(buffer, static_cast<size_t>(n));
  return true;
}

std::optional<HttpReply> TlsClient::read_reply() {
  size_t end;
  while ((end = received_.find("\r\n\r\n")) == std::string::npos)
    if (!read_more()) return std::nullopt;
  HttpReply reply;
  reply.head = received_.substr(0, end + 2);
  reply.status = std::stoi(reply.head.substr(reply.head.find(' ') + 1));
  const auto length_at = to_lower(reply.head).find("content-length: ");
  const size_t length = length_at == std::string::npos ? 0 : std::stoul(reply.head.substr(length_at + 16));
  while (received_.size() < end + 4 + length)
    if (!read_more()) return std::nullopt;
  reply.body = received_.substr(end + 4, length);
  received_.erase(0, end + 4 + length);
  return reply;
}

bool TlsClient::closed_by_server() {
  while (read_more()) {
  }
  return true;
}

std::optional<HttpReply> TlsClient::post(const std::string& path, const std::string& body,
                                         const std::string& content_type) {
  send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: " + content_type +
       "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  return read_reply();
}

ServeTest::ServeTest() {
  settings_.address = "127.0.0.1";
  settings_.port = 0;
  settings_.drain_grace = std::chrono::milliseconds(0);
  certificate_.set(make_key_pair());
  policies_.publish(
      std::make_shared<const webhook::Policy>(make_policy({{"default", {"a.example.org"}, {}}}, {"10.0.0.1"})));
}

ServeTest::~ServeTest() { stop_and_wait(); }

void ServeTest::start() {
  server_ = std::make_unique<webhook::AdmissionServer>(settings_, policies_, certificate_, clock_, *metrics_, *log_);
  const auto bound = server_->bind();
  ASSERT_TRUE(bound) << bound.error().message;
  thread_ = std::thread([this] { server_->run(); });
}

void ServeTest::stop_and_wait() {
  if (!thread_.joinable()) return;
  server_->stop();
  thread_.join();
}

std::string ServeTest::review() const { return make_review(make_pod()).dump(); }

void ServeTest::wait_for_requests_in_flight(int count) const {
  while (counted("nezha_admission_requests_in_flight") != count) std::this_thread::yield();
}

double ServeTest::counted(const std::string& series) const {
  std::istringstream text(metrics_->expose());
  for (std::string line; std::getline(text, line);)
    if (line.starts_with(series + ' ')) return std::stod(line.substr(series.size()));
  return -1;
}

}  // namespace nezha::test
