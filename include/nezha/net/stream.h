// Stream: an ordered pair of byte flows (TCP, TLS), with a deadline. The seam between protocol code and the kernel:
// tests put scripted and faulty streams here.
// Threads: the loop's own. Errors are Remedy::kRetryLater (reset, cancelled) or kTimedOut.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>

#include "nezha/base/clock.h"
#include "nezha/net/async.h"

namespace nezha::net {

class Stream {
 public:
  virtual ~Stream() = default;
  // At least one byte, or 0 at the orderly end of the stream.
  virtual Task<Result<size_t>> read_some(std::span<char> into) = 0;
  // Writes as much of the pieces as the kernel takes at once without waiting; 0 is possible. What is left goes by
  // write(), or by this again after wait_writable(). Fails with kGiveUp when the pieces cannot be read (a mapped file
  // whose medium failed).
  virtual Result<size_t> try_write(std::span<const std::string_view> pieces) = 0;
  // The same, when bytes follow at once: the kernel may wait for them to fill a packet.
  virtual Result<size_t> try_write_more(std::span<const std::string_view> pieces) { return try_write(pieces); }
  // Whether try_send_file() works here: what is encrypted cannot go from a file to the wire untouched.
  virtual bool sends_files() const { return false; }
  // As try_write(), of a file's bytes, without copying them: they must not change until the peer has acknowledged them.
  // REQUIRES: sends_files().
  virtual Result<size_t> try_send_file(int file, uint64_t offset_bytes, uint64_t size_bytes);
  // Returns when the kernel takes more bytes. Touches no piece: fails only as the connection does.
  virtual Task<Result<void>> wait_writable() = 0;
  // All of the pieces, waiting as needed.
  virtual Task<Result<void>> write(std::span<const std::string_view> pieces) = 0;
  // True once read_some() has something to say: a byte, the end, or a failure; false when `timeout` passed first.
  virtual Task<bool> wait_readable(std::chrono::milliseconds timeout) = 0;
  // Past it, reads and writes under way fail. Checked about four times a second.
  virtual void set_deadline(SteadyTime deadline) = 0;
  // Ends our sending side in an orderly way; reading goes on.
  virtual void shutdown_send() = 0;
  // Ends both sides at once; with `reset` the peer sees a connection error instead of an orderly end.
  virtual void close(bool reset) = 0;
  // For a pooled connection: no byte and no end has arrived, as far as can be told without waiting.
  virtual bool is_quiet() = 0;
  // For logs: "10.0.0.1:4711".
  virtual std::string peer() const = 0;
};

// Bounds the operations within a scope; outside of it the stream may rest for as long as it likes.
class ScopedDeadline {
 public:
  ScopedDeadline(Stream& stream, SteadyTime deadline) : stream_(stream) { stream.set_deadline(deadline); }
  ~ScopedDeadline() { stream_.set_deadline(SteadyTime::max()); }
  ScopedDeadline(const ScopedDeadline&) = delete;
  ScopedDeadline& operator=(const ScopedDeadline&) = delete;

 private:
  Stream& stream_;
};

// Skips the first `bytes` of the pieces, in place.
void skip_bytes(std::span<std::string_view>& pieces, size_t bytes);

}  // namespace nezha::net
