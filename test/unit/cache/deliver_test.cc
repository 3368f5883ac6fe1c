// A client that takes its time: what left the memory meanwhile is brought in again before it is sent, whichever way.
#include "cache/deliver/deliver.h"

#include <gtest/gtest.h>

#include "test/support/faulty_medium.h"
#include "test/support/scripted_origin.h"
#include "test/support/store_box.h"

namespace nezha::cache {
namespace {

using test::Call;
using test::Faults;

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kSegment = 8 * kMiB;
const CacheKey kKey{"h/x", ""};

// Takes some bytes, then none until it was waited for; that is when the pages go.
class SlowClient final : public net::Stream {
 public:
  SlowClient(Faults& faults, test::ManualClock& clock, std::string_view file)
      : faults_(faults), clock_(clock), file_(file) {}

  Result<size_t> try_write(std::span<const std::string_view> pieces) override {
    size_t size = 0;
    for (const auto piece : pieces) size += take(piece);
    return size;
  }
  bool sends_files() const override { return !file_.empty(); }
  Result<size_t> try_send_file(int, uint64_t offset, uint64_t size) override {
    return take(file_.substr(offset, size));
  }
  net::Task<Result<void>> wait_writable() override {
    room_ = kAtOnce;
    faults_.evict();
    clock_.advance(std::chrono::seconds(10));
    co_return ok();
  }
  net::Task<Result<void>> write(std::span<const std::string_view>) override {
    co_return fail(Remedy::kGiveUp, "it waits within, where nobody looks whether the bytes are still there");
  }
  net::Task<Result<size_t>> read_some(std::span<char>) override { co_return size_t{0}; }
  net::Task<bool> wait_readable(std::chrono::milliseconds) override { co_return true; }
  void set_deadline(SteadyTime) override {}
  void shutdown_send() override {}
  void close(bool) override {}
  bool is_quiet() override { return true; }
  std::string peer() const override { return "slow"; }

  std::string written;

 private:
  static constexpr size_t kAtOnce = 100'000;
  size_t take(std::string_view bytes) {
    bytes = bytes.substr(0, room_);
    if (bytes.empty()) return 0;
    EXPECT_FALSE(faults_.evicted()) << "touched while it is not in memory";
    room_ -= bytes.size();
    written.append(bytes);
    return bytes.size();
  }
  Faults& faults_;
  test::ManualClock& clock_;
  const std::string_view file_;
  size_t room_ = kAtOnce;
};

class SlowDelivery : public testing::Test {
 protected:
  // The body as it lies in the tier; `file`: its pieces say that they are in a file, too.
  Result<void> deliver_slowly(bool file, bool chunked) {
    auto body = *box_.store().pin(kKey, box_.find(kKey), {0, bytes_.size()});
    std::string_view whole_file;
    for (PinnedBytes& piece : body.pieces) {
      if (!file) continue;
      piece.file = 1;
      whole_file = {piece.file_begin, kSegment};
    }
    SlowClient client(faults_, box_.clock(), whole_file);
    Delivery delivery;
    delivery.head = "head";
    delivery.chunked = chunked;
    delivery.body = make_pinned_source(box_.store(), std::move(body));
    SendMeter meter;
    uint64_t sent_bytes = 0;
    auto sent = test::run_task(deliver(client, std::move(delivery), box_.store(), meter, box_.clock(), sent_bytes));
    written_ = std::move(client.written);
    return sent;
  }

  void SetUp() override { ASSERT_TRUE(box_.put(kKey, test::head_of("\"1\"", bytes_.size()), bytes_)); }

  const std::string bytes_ = test::pattern_bytes(3 * kMiB, 1);
  test::TestDisk disk_;
  Faults faults_;
  test::StoreBox box_{test::make_faulty_medium(disk_.medium(), faults_), 16 * kSegment, kSegment};
  std::string written_;
};

TEST_F(SlowDelivery, TouchesOnlyWhatIsInMemory) {
  for (const bool file : {false, true}) {
    ASSERT_TRUE(deliver_slowly(file, false));
    EXPECT_TRUE(written_ == "head" + bytes_) << file;
  }
  ASSERT_TRUE(deliver_slowly(false, true));
  EXPECT_GT(written_.size(), bytes_.size());
}

TEST_F(SlowDelivery, EndsWhereBytesDoNotComeBack) {
  for (const bool file : {false, true}) {
    faults_.arm(Call::kLoad, 3, UINT64_MAX);
    const Result<void> sent = deliver_slowly(file, false);
    ASSERT_FALSE(sent);
    EXPECT_EQ(sent.error().remedy, Remedy::kGiveUp);
    EXPECT_TRUE(("head" + bytes_).starts_with(written_));
    EXPECT_LT(written_.size(), bytes_.size());
    faults_.disarm();
    faults_.loaded();
  }
}

}  // namespace
}  // namespace nezha::cache
