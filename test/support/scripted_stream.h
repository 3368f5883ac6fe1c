// ScriptedStream: a net::Stream without a socket: what it reads is a script in fragments that ends well or fails; what
// is written is kept. It never suspends, so that a coroutine on it runs to its end at once. Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "nezha/net/stream.h"

namespace nezha::test {

class ScriptedStream final : public net::Stream {
 public:
  enum class End { kOrderly, kReset };
  ScriptedStream(std::string script, size_t fragment_bytes, End end = End::kOrderly)
      : script_(std::move(script)), fragment_bytes_(fragment_bytes), end_(end) {}

  net::Task<Result<size_t>> read_some(std::span<char> into) override {
    const size_t size = std::min({fragment_bytes_, script_.size() - at_, into.size()});
    if (size == 0 && end_ == End::kReset) co_return fail(Remedy::kRetryLater, "connection reset");
    std::memcpy(into.data(), script_.data() + at_, size);
    at_ += size;
    co_return size;
  }
  Result<size_t> try_write(std::span<const std::string_view> pieces) override {
    size_t size = 0;
    for (const auto piece : pieces) written.append(piece), size += piece.size();
    return size;
  }
  net::Task<Result<void>> wait_writable() override { co_return ok(); }
  net::Task<Result<void>> write(std::span<const std::string_view> pieces) override {
    (void)try_write(pieces);
    co_return ok();
  }
  net::Task<bool> wait_readable(std::chrono::milliseconds) override { co_return true; }
  void set_deadline(SteadyTime) override {}
  void shutdown_send() override {}
  void close(bool) override {}
  bool is_quiet() override { return at_ == script_.size(); }
  std::string peer() const override { return "script"; }

  std::string written;

 private:
  const std::string script_;
  const size_t fragment_bytes_;
  const End end_;
  size_t at_ = 0;
};

}  // namespace nezha::test
