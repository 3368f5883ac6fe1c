// Connection: a Stream plus a read buffer, from which heads and bodies are taken. Used on both sides of the cache.
// Data flows: bytes -> head -> body bytes. Body bytes are handed out decoded; truncation is an error, never an end.
// Threads: the loop's own.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/http/message.h"
#include "nezha/http/parser.h"
#include "nezha/net/stream.h"

namespace nezha::cache {

// Ends sending behind the last answer. Closing over unread bytes makes the kernel reset the connection, and the client
// may lose the answer it was just sent: what still comes is read away for a while (RFC 9112 §9.6).
net::Task<> linger(net::Stream& stream, const Clock& clock);

class Connection {
 public:
  explicit Connection(std::unique_ptr<net::Stream> stream);

  // Reads until one whole head is there. kNeedMore means: the peer ended the stream in an orderly way before the
  // first byte of a head. kBad: the peer sent nonsense (status and reason say what). Fails when the stream fails or
  // ends inside a head.
  net::Task<Result<http::HeadStep>> read_request_head(http::RequestHead& into);
  net::Task<Result<http::HeadStep>> read_response_head(bool to_head, http::ResponseHead& into);

  // The same, without reading: kNeedMore when what is buffered is not a whole head.
  http::HeadStep take_request_head(http::RequestHead& into);

  // True once bytes are buffered; false at the orderly end of the stream.
  net::Task<Result<bool>> await_bytes();
  // Called once per message, with the framing of its head.
  void begin_body(const http::Framing& framing);
  // At least one byte of the body, or 0 at its proven end: length met, last chunk seen, or the stream's end where that
  // ends the body. Fails with kRetryLater when the stream fails or ends early, with kFixInput for a broken chunk.
  net::Task<Result<size_t>> read_body(std::span<char> into);
  bool body_done() const { return body_done_; }
  // Bytes already read from the stream and not consumed (e.g. a pipelined request).
  bool has_buffered() const { return begin_ != end_; }

  net::Stream& stream() { return *stream_; }
  // The address that was connected; empty for a client.
  const std::string& peer() const { return peer_; }
  void set_peer(std::string address) { peer_ = std::move(address); }
  uint64_t received_bytes() const { return received_bytes_; }

 private:
  std::string_view buffered() const { return {buffer_.data() + begin_, end_ - begin_}; }
  // Reads more behind what is buffered. 0 at the end of the stream.
  net::Task<Result<size_t>> read_more();
  std::span<char> room();
  net::Task<Result<size_t>> read_chunked(std::span<char> into);

  std::unique_ptr<net::Stream> stream_;
  std::string peer_;
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  uint64_t received_bytes_ = 0;
  http::Framing framing_;
  http::ChunkedDecoder chunked_;
  uint64_t left_bytes_ = 0;
  bool body_done_ = true;
};

}  // namespace nezha::cache
