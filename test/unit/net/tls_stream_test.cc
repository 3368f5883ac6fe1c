// TlsStream against OpenSSL's own client and server: fragments, large writes, every way to end, handshakes that fail.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "nezha/net/loop.h"
#include "nezha/net/tls.h"
#include "test/support/event.h"
#include "test/support/scripted_origin.h"
#include "test/support/tls_peer.h"

namespace nezha::net {
namespace {

using test::Event;
using test::kWatchdog;
using test::TlsPeer;
using End = TlsPeer::End;

SteadyTime soon() { return std::chrono::steady_clock::now() + kWatchdog; }

const test::TestPki& authority() {
  static const test::TestPki pki;
  return pki;
}
std::shared_ptr<const TlsServer> identity() {
  const auto leaf = authority().leaf({"data.example"});
  return make_tls_server(leaf.certificate_pem, leaf.key_pem).value();
}
test::TlsPeerOptions trusting() {
  test::TlsPeerOptions options;
  options.roots_pem = authority().ca.certificate_pem;
  return options;
}

// A loop on a thread of its own; each accepted connection goes to `serve_`.
class TlsStreamTest : public testing::Test {
 protected:
  void SetUp() override {
    listener_ = std::move(loop_->listen({"127.0.0.1", 0}).value());
    gate_.spawn(accept_loop());
    thread_ = std::thread([this] { loop_->run(); });
  }
  void TearDown() override {
    loop_->stop();
    thread_.join();
    listener_->close();
    stream_.reset();
    loop_->expire_all();
    loop_->run_until([this] { return gate_.size() == 0; }, soon());
  }
  Task<> accept_loop() {
    for (;;) {
      auto raw = co_await listener_->accept();
      if (!raw) co_return;
      auto stream = co_await accept_tls(*identity_, scratch_, std::move(raw.value()), "", until_);
      failure_ = stream ? "" : stream.error().message;
      if (stream) stream_ = std::move(stream.value());
      ++accepted_;
    }
  }
  // The next connection's handshake has ended, one way or the other.
  bool wait_accepted() {
    ++awaited_;
    return test::eventually([this] { return accepted_ >= awaited_; });
  }
  void run(Task<> task) {
    Event done;
    loop_->post([&] { gate_.spawn(finish(std::move(task), done)); });
    EXPECT_TRUE(done.wait());
  }
  static Task<> finish(Task<> task, Event& done) {
    co_await std::move(task);
    done.set();
  }
  TlsPeer connect(const test::TlsPeerOptions& options = trusting()) {
    TlsPeer peer(test::connect_loopback(listener_->address().port), options);
    EXPECT_TRUE(peer.handshake()) << peer.failure();
    EXPECT_TRUE(wait_accepted());
    return peer;
  }

  std::shared_ptr<const TlsServer> identity_ = identity();
  SteadyTime until_ = soon();
  TlsScratch scratch_;
  std::unique_ptr<Loop> loop_ = make_loop();
  Gate gate_{loop_->executor()};
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Stream> stream_;
  std::string failure_;
  std::atomic<int> accepted_ = 0;
  int awaited_ = 0;
  std::thread thread_;
};

Task<> echo(Stream& stream, size_t& total) {
  std::vector<char> buffer(40'000);
  for (;;) {
    const auto got = co_await stream.read_some(buffer);
    EXPECT_TRUE(got) << got.error().message;
    if (!got || got.value() == 0) break;
    total += got.value();
    const std::array<std::string_view, 1> pieces{std::string_view(buffer.data(), got.value())};
    const auto sent = co_await stream.write(pieces);
    EXPECT_TRUE(sent);
  }
  stream.shutdown_send();
}

Task<> write_pieces(Stream& stream, const std::vector<std::string_view>& pieces, Result<void>& result) {
  // As deliver does it: what is taken at once, then the rest.
  std::vector<std::string_view> copy = pieces;
  std::span<std::string_view> left(copy);
  const auto taken = stream.try_write(left);
  if (!taken) {
    result = taken.error();
    co_return;
  }
  skip_bytes(left, taken.value());
  result = co_await stream.write(left);
}

Task<> read_once(Stream& stream, Result<size_t>& result) {
  std::array<char, 1000> buffer;
  result = co_await stream.read_some(buffer);
}

TEST_F(TlsStreamTest, BytesSurviveEveryFragmentation) {
  for (const size_t fragment : {1, 2, 3, 5, 7, 16, 100, 1000, 0}) {
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
      auto options = trusting();
      options.fragment_bytes = fragment;
      options.version = version;
      TlsPeer peer = connect(options);
      const std::string bytes = test::pattern_bytes(fragment == 0 ? 300'000 : 3000, fragment);
      EXPECT_TRUE(peer.send(bytes));
      peer.goodbye();
      size_t total = 0;
      std::string back;
      std::thread reader([&] { EXPECT_EQ(peer.read_until(back, bytes.size() + 1), End::kGoodbye); });
      run(echo(*stream_, total));
      reader.join();
      EXPECT_EQ(back, bytes) << fragment;
      EXPECT_EQ(total, bytes.size());
      loop_->post([&] { stream_.reset(); });
    }
  }
}

TEST_F(TlsStreamTest, GatheredPiecesOfAnySizeArriveInOrderThroughASmallPipe) {
  const std::string bytes = test::pattern_bytes(3'000'000, 1);
  std::vector<std::string_view> pieces = {"", std::string_view(bytes).substr(0, 300)};
  for (size_t at = 300, size = 1; at < bytes.size(); at += size, size = size * 3 % 200'001)
    pieces.push_back(std::string_view(bytes).substr(at, size));
  pieces.push_back("");
  test::Socket socket = test::connect_loopback(listener_->address().port, 8192);
  TlsPeer peer(std::move(socket), trusting());
  ASSERT_TRUE(peer.handshake());
  ASSERT_TRUE(wait_accepted());
  std::string got;
  std::thread reader([&] { EXPECT_EQ(peer.read_until(got, bytes.size()), End::kBytes); });
  Result<void> result = ok();
  run(write_pieces(*stream_, pieces, result));
  reader.join();
  EXPECT_TRUE(result);
  EXPECT_EQ(got.size(), bytes.size());
  EXPECT_TRUE(got == bytes);
}

Task<> write_rest_in_parts(Stream& stream, std::string_view bytes, Result<void>& result) {
  const std::array<std::string_view, 1> all{bytes};
  const auto taken = stream.try_write(all);
  EXPECT_LT(taken.value(), bytes.size());
  bytes.remove_prefix(taken.value());
  for (size_t size = 0; result && !bytes.empty(); size = size * 3 % 10'001 + 1) {
    const std::array<std::string_view, 2> part{"", bytes.substr(0, size)};
    result = co_await stream.write(part);
    bytes.remove_prefix(part[1].size());
  }
}

TEST_F(TlsStreamTest, TheRestOfAWriteMayComeInPartsOfAnySize) {
  const std::string bytes = test::pattern_bytes(8'000'000, 2);
  TlsPeer peer(test::connect_loopback(listener_->address().port, 8192), trusting());
  ASSERT_TRUE(peer.handshake());
  ASSERT_TRUE(wait_accepted());
  std::string got;
  Result<void> result = ok();
  std::thread reader([&] { EXPECT_EQ(peer.read_until(got, bytes.size()), End::kBytes); });
  run(write_rest_in_parts(*stream_, bytes, result));
  reader.join();
  EXPECT_TRUE(result);
  EXPECT_TRUE(got == bytes);
}

TEST_F(TlsStreamTest, AHeadAndItsBodyLeaveInOneRecord) {
  TlsPeer peer = connect();
  const std::string head(300, 'h'), body(4096, 'b');
  Result<void> result = ok();
  run(write_pieces(*stream_, {head, body}, result));
  std::string got;
  EXPECT_EQ(peer.read(got), End::kBytes);  // one SSL_read gives one record
  EXPECT_EQ(got, head + body);
}

TEST_F(TlsStreamTest, OnlyACloseNotifyIsAnOrderlyEnd) {
  Result<size_t> got = size_t{7};
  {
    TlsPeer peer = connect();
    peer.goodbye();
    run(read_once(*stream_, got));
    ASSERT_TRUE(got);
    EXPECT_EQ(got.value(), 0U);
  }
  TlsPeer cut = connect();
  cut.socket().end_sending();
  run(read_once(*stream_, got));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "the connection ended without TLS's close_notify");
  TlsPeer reset = connect();
  reset.socket().reset();
  run(read_once(*stream_, got));
  EXPECT_FALSE(got);
}

TEST_F(TlsStreamTest, ThePeerSeesWhichWayItWasClosed) {
  std::string bytes;
  TlsPeer orderly = connect();
  loop_->post([&] { stream_->close(false); });
  EXPECT_EQ(orderly.read(bytes), End::kGoodbye);
  TlsPeer broken = connect();
  loop_->post([&] { stream_->close(true); });
  EXPECT_EQ(broken.read(bytes), End::kReset);
  TlsPeer half = connect();
  loop_->post([&] { stream_->shutdown_send(); });
  EXPECT_EQ(half.read(bytes), End::kGoodbye);
  EXPECT_TRUE(half.send("still heard"));
  Result<size_t> got = size_t{0};
  run(read_once(*stream_, got));
  EXPECT_EQ(got.value(), 11U);
}

TEST_F(TlsStreamTest, AWriteLeftHalfWayIsNoOrderlyEnd) {
  test::Socket socket = test::connect_loopback(listener_->address().port, 8192);
  TlsPeer peer(std::move(socket), trusting());
  ASSERT_TRUE(peer.handshake());
  ASSERT_TRUE(wait_accepted());
  const std::string bytes(20'000'000, 'x');
  std::atomic<size_t> taken = 0;
  Event closed;
  loop_->post([&] {
    const std::array<std::string_view, 1> pieces{bytes};
    taken = stream_->try_write(pieces).value();
    stream_->close(false);
    closed.set();
  });
  ASSERT_TRUE(closed.wait());
  EXPECT_LT(taken, bytes.size());
  std::string got;
  EXPECT_EQ(peer.read_until(got, bytes.size()), End::kCut);
}

TEST_F(TlsStreamTest, DeadlinesEndReadsWritesAndHandshakes) {
  TlsPeer peer = connect();
  Result<size_t> got = size_t{0};
  stream_->set_deadline(SteadyTime::min());
  run(read_once(*stream_, got));
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().message, "timed out");
  Event changed;
  loop_->post([&] {
    until_ = SteadyTime::min();
    changed.set();
  });
  ASSERT_TRUE(changed.wait());
  const test::Socket silent = test::connect_loopback(listener_->address().port);
  EXPECT_TRUE(wait_accepted());
  EXPECT_EQ(failure_, "timed out");
}

TEST_F(TlsStreamTest, HandshakesThatAreNoneFailAndLeaveNothingOpen) {
  connect();
  loop_->post([&] { stream_.reset(); });
  const size_t before = test::open_descriptors();
  const std::vector<std::string> openings = {
      "GET / HTTP/1.1\r\nHost: data.example\r\n\r\n",
      std::string(100, '\0'),
      std::string("\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", 10),
      std::string("\x16\x03\x01\x40\x00", 5) + std::string(16384, 'z'),
      "",
  };
  for (int round = 0; round < 100; ++round) {
    test::Socket socket = test::connect_loopback(listener_->address().port);
    socket.send(openings[round % openings.size()]);
    std::string rest;
    if (round % 2 == 0)
      socket.reset();
    else
      socket.end_sending();
    EXPECT_TRUE(wait_accepted());
    EXPECT_NE(failure_, "");
  }
  EXPECT_TRUE(test::eventually([&] { return test::open_descriptors() <= before; }));
}

TEST_F(TlsStreamTest, SpeaksHttp1AloneAndResumes) {
  auto options = trusting();
  options.protocols = "\x02h2\x08http/1.1";
  TlsPeer first = connect(options);
  EXPECT_EQ(first.protocol(), "http/1.1");
  Result<void> result = ok();
  run(write_pieces(*stream_, {"x"}, result));
  std::string got;
  EXPECT_EQ(first.read(got), End::kBytes);  // and with it the tickets
  const auto session = first.session();
  options.resume = session.get();
  TlsPeer second = connect(options);
  EXPECT_TRUE(second.resumed());
  auto other = trusting();
  other.protocols = "\x02h2";
  TlsPeer refused(test::connect_loopback(listener_->address().port), other);
  EXPECT_FALSE(refused.handshake());
  EXPECT_EQ(refused.failure(), "tlsv1 alert no application protocol");
}

TEST_F(TlsStreamTest, RefusesRenegotiationAndOldVersions) {
  auto options = trusting();
  options.version = TLS1_2_VERSION;
  TlsPeer peer = connect(options);
  EXPECT_EQ(SSL_renegotiate(peer.ssl()), 1);
  std::thread client([&] {
    EXPECT_FALSE(peer.handshake());
    EXPECT_EQ(peer.failure(), "no renegotiation");
    peer.socket().reset();
  });
  Result<size_t> got = size_t{0};
  run(read_once(*stream_, got));
  client.join();
  EXPECT_FALSE(got);
  options.version = TLS1_1_VERSION;
  TlsPeer old(test::connect_loopback(listener_->address().port), options);
  EXPECT_FALSE(old.handshake());
}

TEST_F(TlsStreamTest, WaitReadableKnowsPlainBytesFromRecordsThatHoldNone) {
  TlsPeer peer = connect();
  const auto wait = [&](std::chrono::milliseconds timeout) {
    bool readable = false;
    const auto ask = [](Stream& stream, std::chrono::milliseconds time, bool& out) -> Task<> {
      out = co_await stream.wait_readable(time);
    };
    run(ask(*stream_, timeout, readable));
    return readable;
  };
  EXPECT_FALSE(wait(std::chrono::milliseconds(10)));
  SSL_key_update(peer.ssl(), SSL_KEY_UPDATE_NOT_REQUESTED);
  EXPECT_TRUE(peer.handshake());  // sends it
  EXPECT_FALSE(wait(std::chrono::milliseconds(30)));
  EXPECT_TRUE(peer.send("two"));
  EXPECT_TRUE(wait(kWatchdog));
  Result<size_t> got = size_t{0};
  run(read_once(*stream_, got));
  EXPECT_EQ(got.value(), 3U);
}

TEST(TlsServerFiles, BadOnesAreRefusedWithTheReason) {
  const auto leaf = authority().leaf({"a.example"});
  const auto other = authority().leaf({"a.example"});
  EXPECT_EQ(make_tls_server("x", leaf.key_pem).error().message, "no certificate in PEM format");
  EXPECT_EQ(make_tls_server(leaf.certificate_pem, "x").error().message, "no unencrypted private key in PEM format");
  EXPECT_EQ(make_tls_server(leaf.certificate_pem, other.key_pem).error().message,
            "the private key does not belong to the certificate");
}

}  // namespace
}  // namespace nezha::net
