// Port 443 with `tls: intercept`: answers from the cache over TLS, what falls back to the relay, certificates that
// change, and upstreams that are spoken to over TLS.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "test/support/cache_under_test.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"
#include "test/support/tls_peer.h"

namespace nezha::test {
namespace {

namespace fs = std::filesystem;

const TestPki& authority() {
  static const TestPki pki;
  return pki;
}

void write_file(const fs::path& path, const std::string& text) {
  const fs::path fresh = path.string() + ".new";
  std::ofstream(fresh, std::ios::binary) << text;
  fs::rename(fresh, path);
}

// A folder with a pair in it.
class PairFiles {
 public:
  explicit PairFiles(const std::vector<std::string>& names) {
    std::string name = (fs::temp_directory_path() / "nezha-pair-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    put(authority().leaf(names));
  }
  ~PairFiles() { fs::remove_all(folder_); }
  void put(const pki::Identity& identity) const {
    write_file(folder_ / "tls.key", identity.key_pem);
    write_file(folder_ / "tls.crt", identity.certificate_pem);
  }
  config::TlsSettings settings() const {
    return {{{(folder_ / "tls.crt").string(), (folder_ / "tls.key").string()}}, {}};
  }
  const fs::path& folder() const { return folder_; }

 private:
  fs::path folder_;
};

CacheOptions intercepting(const PairFiles& files) {
  CacheOptions options = with_freshness(config::Freshness::Mode::kImmutable);
  options.tls = config::TlsMode::kIntercept;
  options.certificates = files.settings();
  return options;
}

TlsPeerOptions trusting(const std::string& name = "data.example") {
  TlsPeerOptions options;
  options.name = name;
  options.roots_pem = authority().ca.certificate_pem;
  return options;
}

TlsPeer connect_tls(const CacheUnderTest& cache, const TlsPeerOptions& options = trusting(), int buffer_bytes = 0) {
  TlsPeer peer(connect_loopback(cache.tls_port(), buffer_bytes), options);
  EXPECT_TRUE(peer.handshake()) << peer.failure();
  return peer;
}

ScriptedOrigin::Handler serving(const std::string& body) {
  return [body](OriginConnection& connection, const RecordedRequest&) {
    connection.send(response(200, "ETag: \"1\"\r\n", body));
  };
}

// An upstream that speaks TLS and answers every request with the same bytes.
class TlsOrigin {
 public:
  TlsOrigin(const std::vector<std::string>& names, std::string answer)
      : identity_(authority().leaf(names)), answer_(std::move(answer)), thread_([this] { accept_loop(); }) {}
  ~TlsOrigin() {
    listening_.socket.shut();
    thread_.join();
    for (auto& server : servers_) server.join();
  }
  uint16_t port() const { return listening_.port; }
  int connections() const { return connections_; }

 private:
  void accept_loop() {
    for (;;) {
      const int fd = ::accept4(listening_.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      ++connections_;
      servers_.emplace_back([this, fd] { serve(Socket(fd)); });
    }
  }
  void serve(Socket socket) {
    TlsPeer peer(std::move(socket), identity_);
    if (!peer.handshake()) return;
    for (std::string bytes;;) {
      if (peer.read(bytes) != TlsPeer::End::kBytes) return;
      if (!bytes.ends_with("\r\n\r\n")) continue;
      if (!peer.send(answer_)) return;
      bytes.clear();
    }
  }

  ListeningSocket listening_ = listen_loopback();
  pki::Identity identity_;
  std::string answer_;
  std::atomic<int> connections_ = 0;
  std::vector<std::thread> servers_;
  std::thread thread_;
};

TEST(TlsHits, AHitOverTlsEqualsOneOverHttp) {
  const PairFiles files({"data.example"});
  for (const size_t size : {0, 1, 16'000, 16'384, 1024 * 1024, 64 * 1024 * 1024}) {
    const std::string body = pattern_bytes(size, size);
    ScriptedOrigin origin(serving(body));
    CacheOptions options = intercepting(files);
    options.tiers[0].size_bytes = 256 * 1024 * 1024;
    CacheUnderTest cache(origin.port(), options);
    TlsPeer peer = connect_tls(cache);
    const ClientAnswer miss = peer.ask(get("/o"));
    ASSERT_TRUE(miss.complete()) << size;
    EXPECT_TRUE(miss.body == body);
    ASSERT_TRUE(cache.wait_stored("/o"));
    const ClientAnswer hit = peer.ask(get("/o"));
    const ClientAnswer plain = cache.ask(get("/o"));
    ASSERT_TRUE(hit.complete() && plain.complete()) << size;
    EXPECT_TRUE(hit.cache_status().starts_with("nezha; hit")) << hit.head;
    EXPECT_EQ(hit.head.substr(0, hit.head.find("Age:")), plain.head.substr(0, plain.head.find("Age:")));
    EXPECT_TRUE(hit.body == body && plain.body == body);
    EXPECT_EQ(origin.count(), 1U);
  }
}

TEST(TlsHits, RangesAndHeadRequests) {
  const PairFiles files({"data.example"});
  const std::string body = pattern_bytes(100'000, 3);
  ScriptedOrigin origin(serving(body));
  CacheUnderTest cache(origin.port(), intercepting(files));
  TlsPeer peer = connect_tls(cache);
  ASSERT_TRUE(peer.ask(get("/o")).complete());
  ASSERT_TRUE(cache.wait_stored("/o"));
  const ClientAnswer part = peer.ask(get("/o", "Range: bytes=20000-59999\r\n"));
  EXPECT_EQ(part.status, 206);
  EXPECT_TRUE(part.body == body.substr(20'000, 40'000));
  const ClientAnswer head = peer.ask(get("/o", "", "HEAD"));
  EXPECT_EQ(head.value("Content-Length"), "100000");
  EXPECT_EQ(peer.ask(get("https://data.example/o")).status, 200);
  EXPECT_EQ(origin.count(), 1U);
}

TEST(TlsHits, ABrokenBodyIsNoOrderlyEnd) {
  const PairFiles files({"data.example"});
  ScriptedOrigin origin([](OriginConnection& connection, const RecordedRequest&) {
    connection.send("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nETag: \"1\"\r\n\r\n" + std::string(50'000, 'x'));
    connection.close();
  });
  CacheUnderTest cache(origin.port(), intercepting(files));
  TlsPeer peer = connect_tls(cache);
  const ClientAnswer answer = peer.ask(get("/o"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.end, ClientAnswer::End::kReset);  // and not kTruncated, which is what a goodbye would be
}

TEST(TlsHits, AClientThatLeavesDoesNotStopTheFill) {
  const PairFiles files({"data.example"});
  const std::string body = pattern_bytes(8 * 1024 * 1024, 4);
  Event left;
  ScriptedOrigin origin([&](OriginConnection& connection, const RecordedRequest&) {
    const std::string all = response(200, "ETag: \"1\"\r\n", body);
    connection.send(std::string_view(all).substr(0, 1'000'000));
    left.wait();
    connection.send(std::string_view(all).substr(1'000'000));
  });
  CacheUnderTest cache(origin.port(), intercepting(files));
  {
    TlsPeer peer = connect_tls(cache);
    ASSERT_TRUE(peer.send(get("/o")));
    std::string some;
    EXPECT_EQ(peer.read_until(some, 10'000), TlsPeer::End::kBytes);
    peer.socket().reset();
  }
  left.set();
  ASSERT_TRUE(cache.wait_stored("/o"));
  TlsPeer peer = connect_tls(cache);
  const ClientAnswer hit = peer.ask(get("/o"));
  EXPECT_TRUE(hit.complete() && hit.body == body);
  EXPECT_EQ(origin.count(), 1U);
}

TEST(TlsHits, AConnectionIsForOneHost) {
  const PairFiles files({"data.example", "other.example"});
  ScriptedOrigin origin(serving("bytes"));
  CacheUnderTest cache(origin.port(), intercepting(files));
  TlsPeer peer = connect_tls(cache, trusting("other.example"));
  const ClientAnswer wrong = peer.ask(get("/o"));  // Host: data.example
  EXPECT_EQ(wrong.status, 421);
  EXPECT_NE(wrong.body.find("was opened for \"other.example\""), std::string::npos) << wrong.body;
  EXPECT_EQ(peer.ask("GET /o HTTP/1.1\r\nHost: other.example\r\n\r\n").status, 200);  // on the same connection
  EXPECT_EQ(peer.ask("GET http://other.example/o HTTP/1.1\r\nHost: other.example\r\n\r\n").status, 400);
}

TEST(TlsHits, WithoutACertificateTheConnectionIsRelayed) {
  const PairFiles files({"elsewhere.example"});
  const TlsOrigin origin({"data.example"}, response(200, "Origin: itself\r\n", "relayed"));
  CacheOptions options = intercepting(files);
  options.tls_endpoint = true;
  CacheUnderTest cache(origin.port(), options);
  TlsPeer peer = connect_tls(cache);
  const ClientAnswer answer = peer.ask(get("/o"));
  EXPECT_EQ(answer.body, "relayed");
  EXPECT_FALSE(answer.has("Cache-Status"));
  EXPECT_EQ(cache.metric("nezha_cache_tls_uncovered_total"), 1);
  EXPECT_EQ(cache.metric("nezha_cache_tls_relayed_total"), 1);
  EXPECT_EQ(cache.metric("nezha_cache_tls_terminated_total"), 0);
}

// Pods that do not trust the certificate come by this port.
TEST(TlsHits, ThePortThatOnlyRelaysNeverIntercepts) {
  const PairFiles files({"data.example"});
  const TlsOrigin origin({"data.example"}, response(200, "Origin: itself\r\n", "relayed"));
  CacheOptions options = intercepting(files);
  options.tls_endpoint = true;
  CacheUnderTest cache(origin.port(), options);
  TlsPeer peer(connect_loopback(cache.relay_port()), trusting());
  ASSERT_TRUE(peer.handshake()) << peer.failure();
  EXPECT_FALSE(peer.ask(get("/o")).has("Cache-Status"));
  EXPECT_EQ(cache.metric("nezha_cache_tls_relayed_total"), 1);
  EXPECT_EQ(cache.metric("nezha_cache_tls_terminated_total"), 0);
  EXPECT_EQ(cache.metric("nezha_cache_tls_uncovered_total"), 0);
}

TEST(TlsHits, AClientOfAnotherProtocolIsRelayed) {
  const PairFiles files({"data.example"});
  const TlsOrigin origin({"data.example"}, "not http at all");
  CacheOptions options = intercepting(files);
  options.tls_endpoint = true;
  CacheUnderTest cache(origin.port(), options);
  TlsPeerOptions h2 = trusting();
  h2.protocols = "\x02h2";
  TlsPeer peer = connect_tls(cache, h2);
  std::string got;
  peer.send("hello\r\n\r\n");
  EXPECT_EQ(peer.read_until(got, 15), TlsPeer::End::kBytes);
  EXPECT_EQ(got, "not http at all");
}

TEST(TlsHits, CertificatesAreReadAgainWhenTheirFilesChange) {
  const PairFiles files({"data.example"});
  ScriptedOrigin origin(serving("bytes"));
  CacheUnderTest cache(origin.port(), intercepting(files));
  TlsPeer old = connect_tls(cache);
  EXPECT_EQ(old.ask(get("/o")).status, 200);
  const auto same_as_old = [&] {
    TlsPeer peer = connect_tls(cache);
    return X509_cmp(SSL_get0_peer_certificate(peer.ssl()), SSL_get0_peer_certificate(old.ssl())) == 0;
  };
  write_file(files.folder() / "tls.key", "not a key");
  ASSERT_TRUE(eventually([&] { return cache.metric("nezha_cache_certificate_errors_total") >= 1; }));
  EXPECT_TRUE(same_as_old()) << "the last good one stays";
  files.put(authority().leaf({"data.example"}));
  EXPECT_TRUE(eventually([&] { return !same_as_old(); }));
  EXPECT_EQ(old.ask(get("/o")).status, 200) << "connections keep what they began with";
}

TEST(TlsHits, AnExpiredCertificateIsNone) {
  const PairFiles files({"data.example"});
  const TlsOrigin origin({"data.example"}, response(200, "", "relayed"));
  const WallTime now = std::chrono::system_clock::now();
  files.put(authority().leaf({"data.example"}, {now - std::chrono::hours(9), now - std::chrono::hours(1)}));
  CacheOptions options = intercepting(files);
  options.tls_endpoint = true;
  CacheUnderTest cache(origin.port(), options);
  TlsPeer peer = connect_tls(cache);
  EXPECT_EQ(peer.ask(get("/o")).body, "relayed");
}

TEST(TlsHits, AbortedHandshakesLeaveNothingOpen) {
  const PairFiles files({"data.example"});
  ScriptedOrigin origin(serving("bytes"));
  CacheUnderTest cache(origin.port(), intercepting(files));
  EXPECT_EQ(connect_tls(cache).ask(get("/o")).status, 200);
  ASSERT_TRUE(eventually([&] { return cache.connections() == 0; }));
  const size_t before = open_descriptors();
  for (int round = 0; round < 300; ++round) {
    TlsPeer peer(connect_loopback(cache.tls_port()), trusting());
    SSL_do_handshake(peer.ssl());
    char* hello = nullptr;
    const long size = BIO_get_mem_data(SSL_get_wbio(peer.ssl()), &hello);
    peer.socket().send({hello, static_cast<size_t>(round % 3 == 0 ? size / 2 : size)});
    if (round % 2 == 0)
      peer.socket().reset();
    else
      peer.socket().close();
  }
  EXPECT_TRUE(eventually([&] { return cache.connections() == 0 && open_descriptors() <= before; }));
  EXPECT_GE(cache.metric("nezha_cache_tls_handshake_failures_total"), 1);
}

TEST(TlsHits, WhatIsNoTlsGetsAnAlert) {
  const PairFiles files({"data.example"});
  ScriptedOrigin origin(serving("bytes"));
  CacheUnderTest cache(origin.port(), intercepting(files));
  // A hello that says it is longer than any may be, and plain HTTP.
  for (const std::string& bytes : {std::string("\x16\x03\x01\x40\x00\x01\x02\x00\x00", 9), get("/o")}) {
    Socket socket = connect_loopback(cache.tls_port());
    socket.send(bytes);
    std::string got;
    while (got.size() < 7 && socket.read_more(got) == Socket::Read::kBytes) {
    }
    EXPECT_EQ(got, std::string("\x15\x03\x01\x00\x02\x02\x70", 7));
  }
}

TEST(TlsUpstream, IsFetchedOverVerifiedTlsAndItsConnectionsAreReused) {
  const TlsOrigin origin({"data.example"}, response(200, "ETag: \"1\"\r\n", "from afar"));
  CacheOptions options;
  options.tls_endpoint = true;
  options.upstream_roots_pem = authority().ca.certificate_pem;
  CacheUnderTest cache(origin.port(), options);
  RawClient client = cache.connect();
  for (const char* target : {"/a", "/b", "/c"}) {
    const ClientAnswer answer = client.ask(get(target));
    EXPECT_EQ(answer.body, "from afar") << answer.body;
    ASSERT_TRUE(cache.wait_stored(target));
  }
  EXPECT_EQ(origin.connections(), 1);
}

TEST(TlsUpstream, ACertificateThatDoesNotHoldIs502WithTheReason) {
  const TlsOrigin origin({"another.example"}, response(200, "", "x"));
  CacheOptions options;
  options.tls_endpoint = true;
  {
    CacheUnderTest cache(origin.port(), options);  // trusts the system's roots
    const ClientAnswer answer = cache.ask(get("/o"));
    EXPECT_EQ(answer.status, 502);
    EXPECT_NE(answer.body.find("certificate does not hold: unable to get local issuer certificate"), std::string::npos)
        << answer.body;
  }
  options.upstream_roots_pem = authority().ca.certificate_pem;
  CacheUnderTest cache(origin.port(), options);
  const ClientAnswer answer = cache.ask(get("/o"));
  EXPECT_EQ(answer.status, 502);
  EXPECT_NE(answer.body.find("certificate does not hold: hostname mismatch"), std::string::npos) << answer.body;
}

// What was asked over the cache's certificate is fetched from a server that proves its name, or not at all.
TEST(TlsUpstream, BehindAnInterceptedHostItsCertificateMustHoldToo) {
  const PairFiles files({"data.example"});
  const TlsOrigin origin({"another.example"}, response(200, "ETag: \"1\"\r\n", "a stranger's bytes"));
  CacheOptions options = intercepting(files);
  options.tls_endpoint = true;
  options.upstream_roots_pem = authority().ca.certificate_pem;
  CacheUnderTest cache(origin.port(), options);
  TlsPeer peer = connect_tls(cache);
  const ClientAnswer answer = peer.ask(get("/o"));
  EXPECT_EQ(cache.metric("nezha_cache_tls_terminated_total"), 1);
  EXPECT_EQ(answer.status, 502);
  EXPECT_NE(answer.body.find("certificate does not hold: hostname mismatch"), std::string::npos) << answer.body;
  EXPECT_EQ(answer.body.find("a stranger's bytes"), std::string::npos);
}

TEST(TlsUpstream, ABodyWithoutCloseNotifyIsNotWhole) {
  const TlsOrigin whole({"data.example"}, response(200, "ETag: \"1\"\r\n", "all of it"));
  ListeningSocket listening = listen_loopback();
  std::thread cutter([&] {
    const int fd = ::accept4(listening.socket.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    TlsPeer peer(Socket(fd), authority().leaf({"data.example"}));
    std::string request;
    if (!peer.handshake() || peer.read(request) != TlsPeer::End::kBytes) return;
    peer.send("HTTP/1.1 200 OK\r\nETag: \"1\"\r\nConnection: close\r\n\r\nsome of it");
    peer.socket().end_sending();
    (void)peer.read(request);
  });
  CacheOptions options;
  options.tls_endpoint = true;
  options.upstream_roots_pem = authority().ca.certificate_pem;
  CacheUnderTest cache(listening.port, options);
  const ClientAnswer answer = cache.ask(get("/o"));
  cutter.join();
  EXPECT_FALSE(answer.complete());
}

// Other people's clients, where they are installed.
std::string output_of(const std::string& command) {
  std::string out;
  FILE* const pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  for (size_t got; (got = ::fread(buffer, 1, sizeof buffer, pipe)) > 0;) out.append(buffer, got);
  ::pclose(pipe);
  return out;
}

TEST(TlsHits, CurlAndPythonReadTheSameBytes) {
  const PairFiles files({"data.example"});
  write_file(files.folder() / "ca.crt", authority().ca.certificate_pem);
  const std::string body = pattern_bytes(5'000'000, 9);
  ScriptedOrigin origin(serving(body));
  CacheUnderTest cache(origin.port(), intercepting(files));
  const std::string ca = (files.folder() / "ca.crt").string(), port = std::to_string(cache.tls_port());
  const std::string curl = "curl -s --cacert " + ca + " --connect-to data.example:443:127.0.0.1:" + port +
                           " https://data.example/o https://data.example/o 2>/dev/null";
  const std::string python =
      "python3 -c 'import ssl,socket,http.client,sys\n"
      "c = http.client.HTTPSConnection(\"data.example\", context=ssl.create_default_context(cafile=\"" +
      ca + "\"))\nc._create_connection = lambda *a: socket.create_connection((\"127.0.0.1\", " + port +
      "))\nfor _ in range(2):\n  c.request(\"GET\", \"/o\")\n  sys.stdout.buffer.write(c.getresponse().read())\n'";
  int clients = 0;
  for (const auto& [program, command] : {std::pair{"curl", curl}, std::pair{"python3", python}}) {
    if (output_of(std::string("command -v ") + program).empty()) continue;
    ++clients;
    EXPECT_TRUE(output_of(command) == body + body) << program;
  }
  if (clients == 0) GTEST_SKIP() << "neither curl nor python3 is installed";
}

}  // namespace
}  // namespace nezha::test
