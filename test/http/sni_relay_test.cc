// Port 443: real TLS through the relay, names that are not ours, nonsense, and half-closed connections.
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "nezha/base/freer.h"
#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"

namespace nezha::test {
namespace {

using Context = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freer<SSL_free>>;

Context server_context() {
  Context context(SSL_CTX_new(TLS_server_method()));
  std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>> key(EVP_EC_gen("P-256"));
  std::unique_ptr<X509, Freer<X509_free>> certificate(X509_new());
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  X509_sign(certificate.get(), key.get(), EVP_sha256());
  SSL_CTX_use_certificate(context.get(), certificate.get());
  SSL_CTX_use_PrivateKey(context.get(), key.get());
  return context;
}

// A TLS server that answers everything it reads with the name it was asked by and the same bytes.
class TlsEcho {
 public:
  TlsEcho() : listening_(listen_loopback()), context_(server_context()), thread_([this] { accept_loop(); }) {}
  ~TlsEcho() {
    listening_.socket.shut();
    thread_.join();
    for (auto& server : servers_) server.join();
  }
  uint16_t port() const { return listening_.port; }
  int accepted() const { return accepted_; }

 private:
  void accept_loop() {
    for (;;) {
      const int fd = ::accept4(listening_.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      ++accepted_;
      servers_.emplace_back([this, fd] { serve(Socket(fd)); });
    }
  }
  void serve(Socket socket) {
    Session session(SSL_new(context_.get()));
    SSL_set_fd(session.get(), socket.fd());
    if (SSL_accept(session.get()) != 1) return;
    const std::string name = SSL_get_servername(session.get(), TLSEXT_NAMETYPE_host_name);
    SSL_write(session.get(), name.data(), static_cast<int>(name.size()));
    char buffer[16384];
    int got;
    while ((got = SSL_read(session.get(), buffer, sizeof buffer)) > 0) SSL_write(session.get(), buffer, got);
    SSL_shutdown(session.get());
  }

  ListeningSocket listening_;
  Context context_;
  std::atomic<int> accepted_{0};
  std::vector<std::thread> servers_;
  std::thread thread_;
};

CacheOptions relay_options() {
  CacheOptions options;
  options.tls_endpoint = true;
  return options;
}

std::string read_exactly(SSL* session, size_t size) {
  std::string out;
  char buffer[16384];
  while (out.size() < size) {
    const int got = SSL_read(session, buffer, sizeof buffer);
    if (got <= 0) break;
    out.append(buffer, static_cast<size_t>(got));
  }
  return out;
}

class TlsClient {
 public:
  TlsClient(uint16_t port, const char* name)
      : socket_(connect_loopback(port)), context_(SSL_CTX_new(TLS_client_method())), session_(SSL_new(context_.get())) {
    SSL_set_fd(session_.get(), socket_.fd());
    if (name) SSL_set_tlsext_host_name(session_.get(), name);
  }
  bool connect() { return SSL_connect(session_.get()) == 1; }
  SSL* get() { return session_.get(); }

 private:
  Socket socket_;
  Context context_;
  Session session_;
};

TEST(SniRelay, CarriesTlsEndToEnd) {
  TlsEcho server;
  CacheUnderTest cache(server.port(), relay_options());
  for (const char* name : {"data.example", "DATA.example", "other.example"}) {
    TlsClient client(cache.tls_port(), name);
    ASSERT_TRUE(client.connect()) << name;
    EXPECT_EQ(read_exactly(client.get(), std::strlen(name)), name);
    const std::string bytes = pattern_bytes(500'000, 1);
    std::thread writer([&] { SSL_write(client.get(), bytes.data(), static_cast<int>(bytes.size())); });
    writer.join();
    EXPECT_TRUE(read_exactly(client.get(), bytes.size()) == bytes);
    SSL_shutdown(client.get());
    EXPECT_EQ(read_exactly(client.get(), 1), "") << "the server's end comes through";
  }
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0; }));
}

TEST(SniRelay, EndpointsTakeTurns) {
  TlsEcho first, second;
  CacheOptions options = relay_options();
  options.loops = 1;
  options.more_ports = {second.port()};
  CacheUnderTest cache(first.port(), options);
  for (int i = 0; i < 6; ++i) {
    TlsClient client(cache.tls_port(), "data.example");
    ASSERT_TRUE(client.connect());
    EXPECT_EQ(read_exactly(client.get(), 12), "data.example");
  }
  EXPECT_EQ(first.accepted(), 3);
  EXPECT_EQ(second.accepted(), 3);
}

TEST(SniRelay, AnUnknownNameGetsAnAlert) {
  TlsEcho server;
  CacheUnderTest cache(server.port(), relay_options());
  for (const char* name : {"evil.example", static_cast<const char*>(nullptr)}) {
    TlsClient client(cache.tls_port(), name);
    ERR_clear_error();
    EXPECT_FALSE(client.connect());
    EXPECT_EQ(ERR_GET_REASON(ERR_peek_error()), SSL_R_TLSV1_UNRECOGNIZED_NAME)
        << ERR_reason_error_string(ERR_peek_error());
  }
}

TEST(SniRelay, NonsenseIsClosed) {
  CacheUnderTest cache(dead_port(), relay_options());
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100, '\0'), std::string("\x16\x03\x01\xff\xff", 5)}) {
    Socket socket = connect_loopback(cache.tls_port());
    socket.send(bytes);
    std::string answer;
    while (socket.read_more(answer) == Socket::Read::kBytes) {
    }
    EXPECT_LE(answer.size(), 7u);
  }
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0; }));
}

TEST(SniRelay, ADeadUpstreamClosesTheConnection) {
  CacheUnderTest cache(dead_port(), relay_options());
  TlsClient client(cache.tls_port(), "data.example");
  EXPECT_FALSE(client.connect());
}

// A hello for data.example, so that what comes behind it can be raw bytes.
std::string raw_hello() {
  Context context(SSL_CTX_new(TLS_client_method()));
  Session session(SSL_new(context.get()));
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(session.get(), BIO_new(BIO_s_mem()), out);
  SSL_set_tlsext_host_name(session.get(), "data.example");
  SSL_connect(session.get());
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(out, &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

struct RelayedPair {
  ListeningSocket listening = listen_loopback();
  std::unique_ptr<CacheUnderTest> cache = std::make_unique<CacheUnderTest>(listening.port, relay_options());
  Socket client = connect_loopback(cache->tls_port());
  Socket server;
  std::string hello = raw_hello();

  explicit RelayedPair(size_t fragment_bytes) {
    client.send_fragmented(hello, fragment_bytes);
    server = Socket(::accept4(listening.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
    std::string seen;
    while (seen.size() < hello.size() && server.read_more(seen) == Socket::Read::kBytes) {
    }
    EXPECT_EQ(seen, hello) << "the hello reaches the server byte for byte";
  }
};

std::string read_to_end(Socket& socket) {
  std::string out;
  while (socket.read_more(out) == Socket::Read::kBytes) {
  }
  return out;
}

TEST(SniRelay, AConnectionThatComesBackIsRefused) {
  ListeningSocket listening = listen_loopback();
  CacheUnderTest cache(listening.port, relay_options());
  const std::string hello = raw_hello();
  std::thread upstream([&] {  // leads back to the cache, as a wrong DNS entry would
    std::vector<Socket> kept;
    for (;;) {
      kept.emplace_back(::accept4(listening.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!kept.back().open() || kept.size() > 1000) return;
      kept.push_back(connect_loopback(cache.tls_port()));
      kept.back().send(hello);
    }
  });
  Socket client = connect_loopback(cache.tls_port());
  client.send(hello);
  EXPECT_TRUE(eventually([&] { return cache.metric("nezha_cache_tls_refused_total") >= 1; }));
  EXPECT_LT(cache.connections(), 100u);
  listening.socket.shut();
  upstream.join();
}

TEST(SniRelay, HalfClosedByTheClient) {
  RelayedPair pair(1);
  pair.client.send("last words");
  pair.client.end_sending();
  EXPECT_EQ(read_to_end(pair.server), "last words");
  pair.server.send("the answer comes behind the end");
  pair.server.end_sending();
  EXPECT_EQ(read_to_end(pair.client), "the answer comes behind the end");
  EXPECT_TRUE(eventually([&] { return pair.cache->connections() == 0; }));
}

TEST(SniRelay, HalfClosedByTheServer) {
  RelayedPair pair(100);
  pair.server.send("bye");
  pair.server.end_sending();
  EXPECT_EQ(read_to_end(pair.client), "bye");
  pair.client.send("still here");
  pair.client.end_sending();
  EXPECT_EQ(read_to_end(pair.server), "still here");
  EXPECT_TRUE(eventually([&] { return pair.cache->connections() == 0; }));
}

TEST(SniRelay, AResetReachesTheOtherSide) {
  RelayedPair pair(1000);
  pair.client.reset();
  std::string ignored;
  EXPECT_NE(pair.server.read_more(ignored), Socket::Read::kTimeout);
  EXPECT_TRUE(eventually([&] { return pair.cache->connections() == 0; }));
}

}  // namespace
}  // namespace nezha::test
