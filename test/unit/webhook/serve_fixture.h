// A running AdmissionServer on loopback with certificates of its own, and a TLS client that shows what it gets.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "nezha/base/clock.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"
#include "webhook/serve.h"

namespace nezha::test {

// Holds a pair that a test may swap.
class SwappableCertificate final : public webhook::CertificateSource {
 public:
  std::shared_ptr<const webhook::KeyPair> current() const override {
    std::lock_guard lock(mutex_);
    return pair_;
  }
  void set(webhook::KeyPair pair) {
    std::lock_guard lock(mutex_);
    pair_ = std::make_shared<const webhook::KeyPair>(std::move(pair));
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const webhook::KeyPair> pair_;
};

// A self-made CA's leaf for "localhost"; each call gives another one. ca_pem, when given, receives the CA.
webhook::KeyPair make_key_pair(std::string* ca_pem = nullptr);

struct HttpReply {
  int status = 0;
  std::string head;
  std::string body;
  bool has_header(const std::string& line) const { return head.find("\r\n" + line + "\r\n") != std::string::npos; }
};

// One TLS connection. A call that fails leaves ok() false; nothing waits longer than the socket's 20 s timeout.
class TlsClient {
 public:
  explicit TlsClient(uint16_t port);
  ~TlsClient();
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  bool ok() const { return ok_; }
  std::string peer_certificate_pem() const;
  int certificates_sent() const;  // the leaf and what stands behind it
  void send(const std::string& bytes);
  std::optional<HttpReply> read_reply();  // nothing when the server closed instead
  bool closed_by_server();                // waits for the end of the stream

  std::optional<HttpReply> post(const std::string& path, const std::string& body,
                                const std::string& content_type = "application/json");

 private:
  bool read_more();

  bool ok_ = false;
  int socket_ = -1;
  std::string received_;
  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

class ServeTest : public testing::Test {
 protected:
  ServeTest();
  ~ServeTest() override;
  // Replaces the defaults of the test (any port, short drain). REQUIRES: before start().
  webhook::ServeSettings& settings() { return settings_; }
  void start();
  void stop_and_wait();

  uint16_t port() const { return server_->port(); }
  std::string review() const;
  void wait_for_requests_in_flight(int count) const;
  double counted(const std::string& series) const;  // of the metrics' text: `name{labels}`

  webhook::PolicyStore policies_;
  SwappableCertificate certificate_;
  SystemClock clock_;
  std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();
  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  std::unique_ptr<webhook::AdmissionServer> server_;

 private:
  webhook::ServeSettings settings_;
  std::thread thread_;
};

}  // namespace nezha::test
