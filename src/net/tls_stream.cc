// TlsStream: one SSL object between a Stream and our buffers. OpenSSL never sees a socket: its BIO takes from and
// appends to memory and is always ready to take more, so that a write of any size becomes a batch of records that
// leaves in one write of the stream below.
#include <openssl/err.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "nezha/base/check.h"
#include "src/net/tls_context.h"

namespace nezha::net {
namespace {

constexpr size_t kRecordBytes = 16 * 1024;  // the most that a record holds
// Of one write below: more at once is cheaper, but what the kernel does not take is kept per connection. So a write
// begins small, and grows with what was taken.
constexpr size_t kBatchBytesMin = 4 * kRecordBytes;
constexpr size_t kBatchBytesMax = 32 * kRecordBytes;
constexpr size_t kSmallInput = 4 * 1024;  // requests
constexpr size_t kLargeInput = 4 * kRecordBytes;

// The bytes of several pieces, a record's worth at a time.
class Pieces {
 public:
  explicit Pieces(std::span<const std::string_view> pieces) : pieces_(pieces) { settle(); }
  bool empty() const { return pieces_.empty(); }
  size_t skip(size_t bytes) {
    const size_t wanted = bytes;
    while (bytes > 0 && !empty()) bytes -= take(bytes).size();
    return wanted - bytes;
  }
  // Copies only where a record's bytes do not lie together.
  std::string_view next_record(std::string& joined) {
    if (front().size() >= kRecordBytes || pieces_.size() == 1) return take(kRecordBytes);
    joined.clear();
    while (!empty() && joined.size() < kRecordBytes) joined.append(take(kRecordBytes - joined.size()));
    return joined;
  }

 private:
  std::string_view front() const { return pieces_.front().substr(offset_); }
  std::string_view take(size_t bytes_max) {
    const std::string_view out = front().substr(0, bytes_max);
    offset_ += out.size();
    settle();
    return out;
  }
  void settle() {
    while (!pieces_.empty() && offset_ == pieces_.front().size()) {
      pieces_ = pieces_.subspan(1);
      offset_ = 0;
    }
  }

  std::span<const std::string_view> pieces_;
  size_t offset_ = 0;
};

class TlsStream final : public Stream {
 public:
  TlsStream(std::unique_ptr<Stream> raw, SslPtr ssl, TlsScratch& scratch, std::string_view received)
      : raw_(std::move(raw)), ssl_(std::move(ssl)), scratch_(scratch), in_(received.begin(), received.end()) {
    in_end_ = in_.size();
    BIO* const bio = BIO_new(method());
    NEZHA_CHECK(bio != nullptr, "OpenSSL makes no BIO");
    BIO_set_data(bio, this);
    SSL_set_bio(ssl_.get(), bio, bio);
  }

  Task<Result<void>> handshake() {
    for (;;) {
      ERR_clear_error();
      const int done = SSL_do_handshake(ssl_.get());
      const int state = SSL_get_error(ssl_.get(), done);
      if (done != 1 && state != SSL_ERROR_WANT_READ) {
        const long verified = SSL_get_verify_result(ssl_.get());
        const std::string reason = tls_reason();
        (void)flush_now();  // the alert
        if (verified == X509_V_OK) co_return fail(Remedy::kRetryLater, "TLS handshake: " + reason);
        co_return fail(Remedy::kRetryLater, std::string("the server's certificate does not hold: ") +
                                                X509_verify_cert_error_string(verified));
      }
      if (!out_.empty()) NEZHA_CO_DO(co_await flush());
      if (done == 1) co_return ok();
      NEZHA_CO_DO(co_await receive());
    }
  }

  Task<Result<size_t>> read_some(std::span<char> into) override {
    // What reading gave rise to (a key update's answer, our close_notify) has to leave, too.
    if (!out_.empty() && !flushing_ && owed_bytes_ == 0) NEZHA_CO_DO(co_await flush());
    for (;;) {
      NEZHA_CO_TRY(const std::optional<size_t> got, read_now(into));
      if (got) co_return *got;
      NEZHA_CO_DO(co_await receive());
    }
  }

  Result<size_t> try_write(std::span<const std::string_view> pieces) override {
    if (failed_) return *failed_;
    if (flushing_) return size_t{0};
    NEZHA_TRY(flush_now());
    if (!out_.empty()) return size_t{0};
    Pieces left(pieces);
    // All of it is out by now. The caller may come with less of it than before: then the rest stays owed.
    size_t taken = left.skip(owed_bytes_);
    owed_bytes_ -= taken;
    for (size_t batch_bytes = kBatchBytesMin; !left.empty(); batch_bytes = std::min(batch_bytes * 2, kBatchBytesMax)) {
      NEZHA_TRY(const size_t encrypted, encrypt_batch(left, batch_bytes));
      const std::array<std::string_view, 1> batch{scratch_.records};
      const Result<size_t> written = raw_->try_write(batch);
      if (!written) return give_up(written.error());
      const size_t sent = written.value();
      if (sent < batch[0].size()) {
        out_.assign(batch[0].substr(sent));
        owed_bytes_ = encrypted;
        break;
      }
      taken += encrypted;
    }
    return taken;
  }

  Task<Result<void>> write(std::span<const std::string_view> pieces) override {
    std::vector<std::string_view> copy(pieces.begin(), pieces.end());
    std::span<std::string_view> left(copy);
    for (;;) {
      NEZHA_CO_TRY(const size_t sent, try_write(left));
      skip_bytes(left, sent);
      if (left.empty()) co_return ok();
      NEZHA_CO_DO(co_await flush());
    }
  }

  Task<Result<void>> wait_writable() override {
    if (out_.empty()) co_return co_await raw_->wait_writable();
    co_return co_await flush();
  }

  Task<bool> wait_readable(std::chrono::milliseconds timeout) override {
    const SteadyTime end = std::chrono::steady_clock::now() + timeout;
    for (;;) {
      if (has_something_to_say()) co_return true;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      if (left.count() <= 0) co_return false;
      const bool readable = co_await raw_->wait_readable(left);
      if (!readable) co_return false;
      const Result<void> received = co_await receive();
      if (!received) co_return true;
    }
  }

  void set_deadline(SteadyTime deadline) override { raw_->set_deadline(deadline); }

  void shutdown_send() override {
    half_closed_ = true;
    say_goodbye();
    after_flush();
  }

  void close(bool reset) override {
    if (closed_) return;
    closed_ = true;
    // Not after a write that was left half-way: its reader must see that something is missing.
    if (!reset && owed_bytes_ == 0) say_goodbye();
    raw_->close(reset);
  }

  bool is_quiet() override { return !failed_ && !has_input() && raw_->is_quiet(); }
  std::string peer() const override { return raw_->peer(); }

 private:
  bool has_input() const { return in_begin_ != in_end_ || SSL_has_pending(ssl_.get()) == 1; }

  // Plain bytes that are there; 0 at the orderly end; nothing when more has to be received first.
  Result<std::optional<size_t>> read_now(std::span<char> into, bool peek = false) {
    if (failed_) return *failed_;
    if (!has_input() && (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) == 0) return std::optional<size_t>();
    size_t got = 0;
    ERR_clear_error();  // of other connections of this thread
    const int done = peek ? SSL_peek_ex(ssl_.get(), into.data(), into.size(), &got)
                          : SSL_read_ex(ssl_.get(), into.data(), into.size(), &got);
    if (done == 1) return std::optional<size_t>(got);
    const int state = SSL_get_error(ssl_.get(), done);
    if (state == SSL_ERROR_ZERO_RETURN) return std::optional<size_t>(0);
    if (!flushing_ && owed_bytes_ == 0) (void)flush_now();
    if (state == SSL_ERROR_WANT_READ) return std::optional<size_t>();
    failed_ = Error{Remedy::kRetryLater, "TLS: " + tls_reason()};
    return *failed_;
  }

  bool has_something_to_say() {
    std::array<char, 1> byte;
    const auto got = read_now(byte, true);
    return !got || got.value();
  }

  // Encrypted bytes from below.
  Task<Result<void>> receive() {
    if (failed_) co_return *failed_;
    NEZHA_CHECK(in_begin_ == in_end_, "OpenSSL asks for more than it took");
    // A peer that fills a small buffer sends more than requests.
    if (in_.size() < kSmallInput || (in_end_ == in_.size() && in_.size() < kLargeInput))
      in_.resize(in_.size() < kSmallInput ? kSmallInput : kLargeInput);
    in_begin_ = in_end_ = 0;
    const Result<size_t> got = co_await raw_->read_some(in_);
    if (!got)
      failed_ = got.error();
    else if (got.value() == 0)
      failed_ = Error{Remedy::kRetryLater, "the connection ended without TLS's close_notify"};
    if (failed_) co_return *failed_;
    in_end_ = got.value();
    co_return ok();
  }

  // Records into the loop's scratch, until they hold `bytes_max`. The plain bytes in them.
  Result<size_t> encrypt_batch(Pieces& left, size_t bytes_max) {
    scratch_.records.clear();
    size_t bytes = 0;
    sink_ = &scratch_.records;
    while (!left.empty() && bytes < bytes_max) {
      const std::string_view record = left.next_record(scratch_.plain);
      size_t written = 0;
      ERR_clear_error();
      const int done = SSL_write_ex(ssl_.get(), record.data(), record.size(), &written);
      if (done != 1 || written != record.size()) {
        sink_ = &out_;
        return give_up({Remedy::kRetryLater, "TLS: " + tls_reason()});
      }
      bytes += written;
    }
    sink_ = &out_;
    return bytes;
  }

  // What the stream below takes of our output without waiting.
  Result<void> flush_now() {
    if (out_.empty()) return ok();
    const std::array<std::string_view, 1> pieces{out_};
    const Result<size_t> sent = raw_->try_write(pieces);
    if (!sent) return give_up(sent.error());
    out_.erase(0, sent.value());
    after_flush();
    return ok();
  }

  // All of it. Others may add to the output meanwhile: that leaves later.
  Task<Result<void>> flush() {
    if (failed_) co_return *failed_;
    // Another coroutine's records go first; the caller looks again.
    if (flushing_) co_return co_await raw_->wait_writable();
    flushing_ = true;
    std::string sending;
    sending.swap(out_);
    const std::array<std::string_view, 1> pieces{sending};
    Result<void> sent = co_await raw_->write(pieces);
    flushing_ = false;
    if (!sent) co_return give_up(sent.error());
    after_flush();
    co_return ok();
  }

  // Records that are lost cannot be made up for: nothing may follow them.
  Error give_up(Error error) {
    if (!failed_) failed_ = std::move(error);
    return *failed_;
  }

  void after_flush() {
    if (half_closed_ && out_.empty() && !flushing_) raw_->shutdown_send();
  }

  void say_goodbye() {
    if (ended_ || failed_ || SSL_is_init_finished(ssl_.get()) != 1) return;
    ended_ = true;
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
    if (!flushing_) (void)flush_now();
  }

  static int take(BIO* bio, char* into, size_t size, size_t* got) {
    auto& self = *static_cast<TlsStream*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    *got = std::min(size, self.in_end_ - self.in_begin_);
    if (*got == 0) {
      BIO_set_retry_read(bio);
      return 0;
    }
    std::memcpy(into, self.in_.data() + self.in_begin_, *got);
    self.in_begin_ += *got;
    return 1;
  }
  static int give(BIO* bio, const char* bytes, size_t size, size_t* written) {
    auto& self = *static_cast<TlsStream*>(BIO_get_data(bio));
    self.sink_->append(bytes, size);
    *written = size;
    return 1;
  }
  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }
  static const BIO_METHOD* method() {
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* const fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "nezha");
      NEZHA_CHECK(fresh != nullptr, "OpenSSL makes no BIO method");
      BIO_meth_set_read_ex(fresh, take);
      BIO_meth_set_write_ex(fresh, give);
      BIO_meth_set_ctrl(fresh, control);
      BIO_meth_set_create(fresh, [](BIO* bio) {
        BIO_set_init(bio, 1);
        return 1;
      });
      return fresh;
    }();
    return made;
  }

  std::unique_ptr<Stream> raw_;
  SslPtr ssl_;
  TlsScratch& scratch_;
  std::vector<char> in_;  // encrypted, received
  size_t in_begin_ = 0;
  size_t in_end_ = 0;
  std::string out_;  // encrypted, not yet taken by the stream below
  std::string* sink_ = &out_;
  size_t owed_bytes_ = 0;  // plain bytes whose records are in out_, which no write has reported yet
  bool flushing_ = false;  // a coroutine waits in flush()
  bool ended_ = false;     // our close_notify was made
  bool half_closed_ = false;
  bool closed_ = false;
  std::optional<Error> failed_;
};

Task<Result<std::unique_ptr<Stream>>> shake_hands(std::unique_ptr<TlsStream> stream, SteadyTime deadline) {
  stream->set_deadline(deadline);
  const Result<void> done = co_await stream->handshake();
  if (!done) co_return done.error();
  stream->set_deadline(SteadyTime::max());
  co_return std::move(stream);
}

}  // namespace

Task<Result<std::unique_ptr<Stream>>> accept_tls(const TlsServer& server, TlsScratch& scratch,
                                                 std::unique_ptr<Stream> client, std::string_view received,
                                                 SteadyTime deadline) {
  auto stream = std::make_unique<TlsStream>(std::move(client), server.start(), scratch, received);
  co_return co_await shake_hands(std::move(stream), deadline);
}

Task<Result<std::unique_ptr<Stream>>> connect_tls(const TlsClient& client, TlsScratch& scratch,
                                                  std::unique_ptr<Stream> server, TlsNames names, SteadyTime deadline) {
  NEZHA_CO_TRY(SslPtr ssl, client.start(names));
  auto stream = std::make_unique<TlsStream>(std::move(server), std::move(ssl), scratch, "");
  co_return co_await shake_hands(std::move(stream), deadline);
}

}  // namespace nezha::net
