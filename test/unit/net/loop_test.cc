// Loop, Stream, Gate, Notification, Workers: on a real loop and loopback sockets.
#include "nezha/net/loop.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "test/support/event.h"
#include "test/support/scripted_origin.h"
#include "test/support/socket.h"

namespace nezha::net {
namespace {

using test::Event;
using test::kWatchdog;

SteadyTime soon() { return std::chrono::steady_clock::now() + kWatchdog; }

// A loop on a thread of its own and one accepted connection, whose other end is a plain socket.
class LoopTest : public testing::Test {
 protected:
  void SetUp() override {
    listener_ = std::move(loop_->listen({"127.0.0.1", 0}).value());
    const uint16_t port = listener_->address().port;
    gate_.spawn(accept_one());
    thread_ = std::thread([this] { loop_->run(); });
    peer_ = test::connect_loopback(port);
    ASSERT_TRUE(accepted_.wait());
  }
  void TearDown() override {
    loop_->stop();
    thread_.join();
    listener_->close();
    loop_->expire_all();
    loop_->run_until([this] { return gate_.size() == 0; }, soon());
    stream_.reset();
  }
  Task<> accept_one() {
    auto stream = co_await listener_->accept();
    stream_ = std::move(stream.value());
    accepted_.set();
  }
  // Runs a task on the loop and waits for its end.
  void run(Task<> task) {
    Event done;
    loop_->post([&] { gate_.spawn(finish(std::move(task), done)); });
    EXPECT_TRUE(done.wait());
  }
  static Task<> finish(Task<> task, Event& done) {
    co_await std::move(task);
    done.set();
  }

  std::unique_ptr<Loop> loop_ = make_loop();
  Gate gate_{loop_->executor()};
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Stream> stream_;
  test::Socket peer_;
  Event accepted_;
  std::thread thread_;
};

Task<> read_once(Stream& stream, std::string& into, std::optional<Remedy>& failed) {
  std::array<char, 100> buffer{};
  auto got = co_await stream.read_some(buffer);
  if (got)
    into.assign(buffer.data(), got.value());
  else
    failed = got.error().remedy;
}

TEST_F(LoopTest, ReadsBytesAndTheEnd) {
  std::string bytes = "?";
  std::optional<Remedy> failed;
  peer_.send("hello");
  run(read_once(*stream_, bytes, failed));
  EXPECT_EQ(bytes, "hello");
  peer_.end_sending();
  run(read_once(*stream_, bytes, failed));
  EXPECT_EQ(bytes, "");
  EXPECT_FALSE(failed);
}

TEST_F(LoopTest, AResetIsAFailureAndNotAnEnd) {
  std::string bytes = "?";
  std::optional<Remedy> failed;
  peer_.reset();
  run(read_once(*stream_, bytes, failed));
  EXPECT_EQ(failed, Remedy::kRetryLater);
}

TEST_F(LoopTest, APassedDeadlineEndsWhatIsUnderWayAndStaysPassed) {
  std::string bytes = "?";
  std::optional<Remedy> failed;
  stream_->set_deadline(std::chrono::steady_clock::now());
  run(read_once(*stream_, bytes, failed));
  EXPECT_EQ(failed, Remedy::kTimedOut);
  failed.reset();
  stream_->set_deadline(SteadyTime::max());
  run(read_once(*stream_, bytes, failed));
  EXPECT_EQ(failed, Remedy::kTimedOut);
}

Task<> wait_once(Stream& stream, std::chrono::milliseconds timeout, bool& readable) {
  readable = co_await stream.wait_readable(timeout);
}

TEST_F(LoopTest, WaitReadable) {
  bool readable = true;
  run(wait_once(*stream_, std::chrono::milliseconds(1), readable));
  EXPECT_FALSE(readable);
  peer_.send("x");
  run(wait_once(*stream_, kWatchdog, readable));
  EXPECT_TRUE(readable);
}

TEST_F(LoopTest, WaitReadableReturnsWhenTheStreamIsClosed) {
  bool readable = false;
  stream_->close(false);
  run(wait_once(*stream_, kWatchdog, readable));
  EXPECT_TRUE(readable) << "so that the caller reads and learns of the failure";
}

Task<> write_all(Stream& stream, const std::string& bytes, std::optional<Result<void>>& result) {
  const std::array<std::string_view, 1> pieces{bytes};
  result.emplace(co_await stream.write(pieces));
}

// Both directions of a relay share a socket: a wait for bytes that times out must not break the write of the other one.
TEST_F(LoopTest, AWaitThatTimesOutLeavesAWriteAlone) {
  const std::string bytes = test::pattern_bytes(30'000'000, 1);
  std::optional<Result<void>> written;
  Event done;
  loop_->post([&] { gate_.spawn(finish(write_all(*stream_, bytes, written), done)); });
  bool readable = true;
  for (int i = 0; i < 5; ++i) run(wait_once(*stream_, std::chrono::milliseconds(1), readable));
  EXPECT_FALSE(readable);
  std::string got;
  while (got.size() < bytes.size() && peer_.read_more(got, 1 << 20) == test::Socket::Read::kBytes) {
  }
  EXPECT_TRUE(done.wait());
  ASSERT_TRUE(written);
  EXPECT_TRUE(*written) << written->error().message;
  EXPECT_TRUE(got == bytes);
}

Task<> connect_once(Loop& loop, uint16_t port, SteadyTime deadline, std::optional<std::string>& failure) {
  const SocketAddress address{"127.0.0.1", port};
  auto stream = co_await loop.connect(address, deadline);
  if (!stream) failure = stream.error().message;
}

TEST_F(LoopTest, ConnectNamesWhatFailed) {
  std::optional<std::string> failure;
  const uint16_t port = test::dead_port();
  run(connect_once(*loop_, port, soon(), failure));
  ASSERT_TRUE(failure);
  EXPECT_NE(failure->find("127.0.0.1:" + std::to_string(port)), std::string::npos);
}

Task<> wait_for_change(Notification& changed, uint64_t seen, std::atomic<int>& woken) {
  co_await changed.wait(seen);
  ++woken;
}

TEST_F(LoopTest, NotificationsWakeAllWaitersOnceAndNoneIsLost) {
  Notification changed;
  std::atomic<int> woken{0};
  for (int round = 0; round < 200; ++round) {
    const uint64_t seen = changed.version();
    woken = 0;
    loop_->post([&, seen] {
      for (int i = 0; i < 5; ++i) gate_.spawn(wait_for_change(changed, seen, woken));
    });
    changed.notify_all();  // before, while or after they begin to wait
    ASSERT_TRUE(test::eventually([&] { return woken == 5; })) << round;
  }
}

Task<> work_elsewhere(Workers& workers, std::thread::id& worker, std::thread::id& after) {
  std::function<void()> work = [&worker] { worker = std::this_thread::get_id(); };
  co_await workers.run(std::move(work));
  after = std::this_thread::get_id();
}

TEST_F(LoopTest, WorkersRunElsewhereAndResumeHere) {
  const auto workers = make_workers(2);
  std::thread::id worker, after;
  run(work_elsewhere(*workers, worker, after));
  EXPECT_NE(worker, thread_.get_id());
  EXPECT_EQ(after, thread_.get_id());
}

TEST(Listen, BadAddressesAreTheWritersToFix) {
  const auto loop = make_loop();
  for (const char* ip : {"", "localhost", "300.1.1.1", "192.0.2.1"}) {
    const auto listener = loop->listen({ip, 0});
    ASSERT_FALSE(listener) << ip;
    EXPECT_EQ(listener.error().remedy, Remedy::kFixInput);
    EXPECT_NE(listener.error().message.find(ip), std::string::npos);
  }
}

TEST(SkipBytes, AcrossPieces) {
  std::array<std::string_view, 4> pieces{"abc", "", "de", "f"};
  std::span<std::string_view> left(pieces);
  skip_bytes(left, 1);
  EXPECT_EQ(left.front(), "bc");
  skip_bytes(left, 3);
  EXPECT_EQ(left.front(), "e");
  skip_bytes(left, 2);
  EXPECT_TRUE(left.empty());
}

TEST(SocketAddressText, BracketsV6) {
  EXPECT_EQ((SocketAddress{"127.0.0.1", 80}).text(), "127.0.0.1:80");
  EXPECT_EQ((SocketAddress{"::1", 80}).text(), "[::1]:80");
}

}  // namespace
}  // namespace nezha::net
