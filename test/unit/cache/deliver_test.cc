// A client that takes its time: what left the memory meanwhile is brought in again before it is sent, whichever way.
// An answer that is begun at once and delivered later is one answer, wherever the kernel stopped taking it.
#include "cache/deliver/deliver.h"

#include <gtest/gtest.h>

#include <array>

#include "nezha/net/tls.h"
#include "test/support/faulty_medium.h"
#include "test/support/scripted_origin.h"
#include "test/support/store_box.h"
#include "test/support/tls_peer.h"

namespace nezha::cache {
namespace {

using test::Call;
using test::Faults;

constexpr uint64_t kMiB = 1024 * 1024;
constexpr uint64_t kSegment = 8 * kMiB;
const CacheKey kKey{"h/x", ""};

// What a client takes before it was waited for, and after each wait.
struct Rooms {
  size_t at_first = 100'000;
  size_t later = 100'000;
};

// Takes some bytes, then none until it was waited for; that is when the pages go.
class SlowClient final : public net::Stream {
 public:
  SlowClient(Faults& faults, test::ManualClock& clock, std::string_view file, size_t head_bytes, Rooms rooms)
      : faults_(faults), clock_(clock), file_(file), head_bytes_(head_bytes), rooms_(rooms) {}

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
    room_ = rooms_.later;
    faults_.evict();
    clock_.advance(std::chrono::seconds(10));
    if (std::exchange(next_wait_fails, false)) co_return fail(Remedy::kTimedOut, "timed out");
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
  bool next_wait_fails = false;

 private:
  size_t take(std::string_view bytes) {
    bytes = bytes.substr(0, room_);
    if (bytes.empty()) return 0;
    EXPECT_FALSE(written.size() >= head_bytes_ && faults_.evicted()) << "touched while it is not in memory";
    room_ -= bytes.size();
    written.append(bytes);
    return bytes.size();
  }
  Faults& faults_;
  test::ManualClock& clock_;
  const std::string_view file_;
  const size_t head_bytes_;  // which are always in memory
  const Rooms rooms_;
  size_t room_ = rooms_.at_first;
};

class SlowDelivery : public testing::Test {
 protected:
  // The body as it lies in the tier; `file`: its pieces say that they are in a file, too.
  PinnedBody pin(bool file, http::ByteRange range, const CacheKey& key = kKey) {
    faults_.loaded();
    auto body = *box_.store().pin(key, box_.find(key), range);
    for (PinnedBytes& piece : body.pieces) {
      if (file) piece.file = 1;
      if (box_.store().is_ready(piece)) continue;
      EXPECT_TRUE(test::run_task(box_.store().make_ready(piece)));
    }
    return body;
  }
  static std::string_view file_of(const PinnedBody& body) {
    const PinnedBytes& piece = body.pieces.front();
    return piece.file < 0 ? std::string_view() : std::string_view(piece.file_begin, kSegment);
  }
  Result<void> deliver_rest(net::Stream& client, std::string_view head, PinnedBody body, bool chunked = false,
                            std::optional<uint64_t> length = std::nullopt) {
    Delivery delivery;
    delivery.head = head;
    delivery.chunked = chunked;
    delivery.body = make_pinned_source(box_.store(), std::move(body));
    delivery.length = length;
    uint64_t sent_bytes = 0;
    return test::run_task(deliver(client, std::move(delivery), box_.store(), meter_, box_.clock(), sent_bytes));
  }
  Result<void> deliver_slowly(bool file, bool chunked, Rooms rooms = {}) {
    auto body = pin(file, {0, bytes_.size()});
    SlowClient client(faults_, box_.clock(), file_of(body), 4, rooms);
    auto sent = deliver_rest(client, "head", std::move(body), chunked);
    written_ = std::move(client.written);
    return sent;
  }
  void evict() {
    faults_.evict();
    box_.clock().advance(std::chrono::seconds(10));
  }
  // As a session does it. False: it could not be begun, and was delivered.
  bool begin_and_deliver(net::Stream& client, std::string_view head, PinnedBody body, bool evicted) {
    const uint64_t size = head.size() + body.range.size_bytes();
    const auto begun = begin_delivery(client, head, &body, box_.store(), meter_);
    if (begun == size) return true;
    if (evicted) evict();
    const size_t sent_of_head = std::min(begun.value_or(0), head.size());
    skip_bytes(body, begun.value_or(0) - sent_of_head);
    const uint64_t left = body.range.size_bytes();
    EXPECT_TRUE(deliver_rest(client, head.substr(sent_of_head), std::move(body), false, left));
    return begun.has_value();
  }

  void SetUp() override { ASSERT_TRUE(box_.put(kKey, test::head_of("\"1\"", bytes_.size()), bytes_)); }

  const std::string bytes_ = test::pattern_bytes(3 * kMiB, 1);
  test::TestDisk disk_;
  Faults faults_;
  test::StoreBox box_{test::make_faulty_medium(disk_.medium(), faults_), 16 * kSegment, kSegment};
  SendMeter meter_;
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

TEST_F(SlowDelivery, TouchesOnlyWhatIsInMemoryWhenTheHeadHadToWait) {
  for (const bool file : {false, true}) {
    ASSERT_TRUE(deliver_slowly(file, false, {.at_first = 0}));
    EXPECT_TRUE(written_ == "head" + bytes_) << file;
  }
}

TEST_F(SlowDelivery, NothingFollowsAHeadThatIsNotWhole) {
  auto body = pin(true, {0, bytes_.size()});
  SlowClient client(faults_, box_.clock(), file_of(body), 4, {.at_first = 2});
  client.next_wait_fails = true;
  // Of this length the second piece is too much: a failure of the source, with the first one gathered.
  EXPECT_FALSE(deliver_rest(client, "head", std::move(body), false, kMiB + 1));
  EXPECT_EQ(client.written, "he");
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

struct Answer {
  std::string name;
  bool file;
  http::ByteRange range;
  bool parted = false;  // of kParted, in pieces of any size
};
const CacheKey kParted{"h/parted", ""};

class BegunDelivery : public SlowDelivery {
 protected:
  void SetUp() override {
    SlowDelivery::SetUp();
    const auto head = test::head_of("\"1\"", 1031);
    uint64_t at = 0;
    for (const uint64_t size : {500, 1, 500, 30}) {
      ASSERT_TRUE(box_.put(kParted, head, std::string_view(bytes_).substr(at, size), at, true));
      at += size;
    }
    ASSERT_EQ(pin(false, {0, 1031}, kParted).pieces.size(), 4u);
  }
  std::vector<Answer> answers() {
    const uint64_t edge = box_.store().fill_tier().piece_bytes();
    return {
        {"small", false, {100, 400}},
        {"small, in a file", true, {100, 400}},
        {"small, of two pieces", false, {edge - 200, edge + 100}},
        {"small, of four pieces", false, {0, 1031}, true},
        {"large", false, {edge - 70'000, edge + 70'000}},
        {"large, in a file", true, {edge - 70'000, edge + 70'000}},
        {"large, in a file, with a small end", true, {edge - 70'000, edge + 10}},
    };
  }
  PinnedBody pin_answer(const Answer& answer) { return pin(answer.file, answer.range, answer.parted ? kParted : kKey); }
  std::string whole(const Answer& answer) const {
    return head_ + bytes_.substr(answer.range.begin, answer.range.size_bytes());
  }
  // Around each place where something ends.
  std::vector<size_t> amounts(const PinnedBody& body) const {
    std::vector<size_t> out{0, 1};
    size_t end = head_.size();
    for (size_t i = 0;; end += body.pieces[i++].bytes.size()) {
      out.insert(out.end(), {end - 1, end, end + 1});
      if (i == body.pieces.size()) return out;
    }
  }
  const std::string head_ = std::string(300, 'h');
};

TEST_F(BegunDelivery, IsOneAnswerWhateverIsTakenAtOnce) {
  for (const Answer& answer : answers()) {
    for (const size_t amount : amounts(pin_answer(answer))) {
      SCOPED_TRACE(answer.name + ", " + std::to_string(amount));
      const bool large = answer.range.size_bytes() > 50'000;
      auto body = pin_answer(answer);
      const Rooms rooms{amount, std::max<size_t>(amount, large ? 20'000 : 1)};
      SlowClient client(faults_, box_.clock(), file_of(body), head_.size(), rooms);
      EXPECT_EQ(begin_and_deliver(client, head_, std::move(body), true), !large || answer.file);
      EXPECT_TRUE(client.written == whole(answer));
    }
  }
}

// A connection whose other end is a TLS client in this process. It takes everything until `room` is set.
struct TlsClientEnd {
  TlsClientEnd() {
    SSL_set_bio(ssl.get(), in, out);
    SSL_set_connect_state(ssl.get());
  }
  void receive(std::string_view bytes) {
    BIO_write(in, bytes.data(), static_cast<int>(bytes.size()));
    std::array<char, 16384> buffer;
    while (SSL_is_init_finished(ssl.get()) == 1) {
      const int got = SSL_read(ssl.get(), buffer.data(), buffer.size());
      if (got <= 0) return;
      plain.append(buffer.data(), static_cast<size_t>(got));
    }
  }

  test::TlsContext context{SSL_CTX_new(TLS_client_method())};
  std::unique_ptr<SSL, Freer<SSL_free>> ssl{SSL_new(context.get())};
  BIO* const in = BIO_new(BIO_s_mem());   // of ssl
  BIO* const out = BIO_new(BIO_s_mem());  // of ssl
  std::string plain;
  size_t room = SIZE_MAX;
  Rooms rooms;
};

class TlsWire final : public net::Stream {
 public:
  explicit TlsWire(TlsClientEnd& end) : end_(end) {}
  net::Task<Result<size_t>> read_some(std::span<char> into) override {
    SSL_do_handshake(end_.ssl.get());
    const int got = BIO_read(end_.out, into.data(), static_cast<int>(into.size()));
    if (got <= 0) co_return fail(Remedy::kRetryLater, "the client has nothing to say");
    co_return static_cast<size_t>(got);
  }
  Result<size_t> try_write(std::span<const std::string_view> pieces) override {
    size_t size = 0;
    for (auto piece : pieces) {
      piece = piece.substr(0, end_.room);
      if (end_.room != SIZE_MAX) end_.room -= piece.size();
      size += piece.size();
      end_.receive(piece);
    }
    return size;
  }
  net::Task<Result<void>> wait_writable() override {
    end_.room = end_.rooms.later;
    co_return ok();
  }
  net::Task<Result<void>> write(std::span<const std::string_view> pieces) override {
    for (const auto piece : pieces) end_.receive(piece);
    end_.room = end_.rooms.later;
    co_return ok();
  }
  net::Task<bool> wait_readable(std::chrono::milliseconds) override { co_return true; }
  void set_deadline(SteadyTime) override {}
  void shutdown_send() override {}
  void close(bool) override {}
  bool is_quiet() override { return true; }
  std::string peer() const override { return "wire"; }

 private:
  TlsClientEnd& end_;
};

TEST_F(BegunDelivery, IsOneAnswerOverTls) {
  const test::TestPki pki;
  const auto leaf = pki.leaf({"data.example"});
  const auto server = net::make_tls_server(leaf.certificate_pem, leaf.key_pem).value();
  net::TlsScratch scratch;
  for (const Answer& answer : answers()) {
    for (const size_t amount : amounts(pin_answer(answer))) {
      for (const bool evicted : {false, true}) {
        SCOPED_TRACE(answer.name + ", " + std::to_string(amount) + (evicted ? ", evicted" : ""));
        TlsClientEnd end;
        auto stream =
            test::run_task(net::accept_tls(*server, scratch, std::make_unique<TlsWire>(end), "", SteadyTime::max()));
        ASSERT_TRUE(stream) << stream.error().message;
        end.room = amount;
        end.rooms = {amount, std::max<size_t>(amount, 100)};
        begin_and_deliver(*stream.value(), head_, pin_answer(answer), evicted);
        EXPECT_TRUE(end.plain == whole(answer));
      }
    }
  }
}

}  // namespace
}  // namespace nezha::cache
