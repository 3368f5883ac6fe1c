// ClientSide: one client connection: the requests that come from it, their bodies, and exactly one final answer to
// each. Knows nothing of caching. Threads: the loop's own.
#pragma once

#include <memory>
#include <string>

#include "cache/deliver/deliver.h"
#include "cache/request/answers.h"
#include "cache/request/session_deps.h"

namespace nezha::cache {

class ClientSide final : public RequestSide {
 public:
  ClientSide(SessionDeps& deps, std::unique_ptr<net::Stream> stream) : deps_(deps), client_(std::move(stream)) {}

  // The next request; false when there is none, or it was refused as no HTTP. `idle` as in run_session().
  net::Task<bool> read_request(bool& idle);
  // After its answer: what is left of its body is out of the way, or the connection will not go on.
  net::Task<> finish_request();
  // Closes, so that the client can still read the last answer, or tell that it is not whole.
  net::Task<> end();

  const http::RequestHead& request() const { return request_; }
  // Whether the connection goes on after this answer.
  bool open() const { return open_; }
  void close_after_answer() { open_ = false; }
  bool body_done() const { return client_.body_done(); }
  bool broke() const { return broke_; }  // its request body ended early or is not valid

  HeadOptions options(std::string cache_status) const;
  // An answer that breaks off resets the connection, in end(). False when the store's own bytes were at fault: forget
  // them before that, so that a client that comes again finds the source instead of the same broken bytes.
  net::Task<bool> send(Delivery delivery);
  // An answer whose first bytes are at hand, without waiting. False: nothing was sent, use send(). If there is_rest(),
  // that the kernel did not take, await send_rest() with what is left of the body; it returns what send() does.
  bool send_now(std::string_view head, const PinnedBody* body);
  bool is_rest() const { return is_rest_; }
  net::Task<bool> send_rest(std::unique_ptr<BodySource> body, uint64_t size_bytes);
  uint64_t sent_of_body() const { return rest_skip_bytes_; }  // by send_now()
  // An answer of our own.
  net::Task<> refuse(int status, std::string text, std::string cache_status);

  // RequestSide
  bool has_body() const override { return request_.framing.kind != http::Framing::Kind::kNone; }
  bool expects_continue() const override;
  http::Framing framing() const override { return request_.framing; }
  net::Task<Result<size_t>> read_body(std::span<char> into) override;
  net::Task<Result<void>> interim(const http::ResponseHead& head) override;

 private:
  net::Task<bool> finish_answer(Delivery delivery);
  net::Task<bool> skip_request_body();

  SessionDeps& deps_;
  Connection client_;
  http::RequestHead request_;
  bool is_rest_ = false;
  std::string rest_head_;  // of an answer that was begun, and how much of its body is out
  uint64_t rest_skip_bytes_ = 0;
  bool open_ = true;
  bool broke_ = false;
  bool answered_ = false;   // a final head went out
  bool was_large_ = false;  // and more than its receiver takes at once
  bool broken_ = false;     // but not all of its body
};

}  // namespace nezha::cache
