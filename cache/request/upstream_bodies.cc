#include "cache/request/upstream_bodies.h"

#include "cache/deliver/deliver.h"
#include "cache/request/asking.h"
#include "nezha/base/limits.h"

namespace nezha::cache {
namespace {

class RelaySource final : public BodySource {
 public:
  RelaySource(Connection& connection, const Clock& clock)
      : connection_(connection), clock_(clock), buffer_(limits::kRelayBytes) {}
  std::optional<Result<PinnedBytes>> try_next() override {
    if (!ready_) return std::nullopt;
    ready_ = false;
    if (failed_) return Result<PinnedBytes>(*failed_);
    return Result<PinnedBytes>(PinnedBytes{{buffer_.data(), size_}, nullptr});
  }
  net::Task<> wait() override {
    const net::ScopedDeadline deadline(connection_.stream(), clock_.now() + limits::kBodyStallTimeout);
    const auto got = co_await connection_.read_body(buffer_);
    if (got)
      size_ = got.value();
    else
      failed_ = got.error();
    ready_ = true;
  }

 private:
  Connection& connection_;
  const Clock& clock_;
  std::vector<char> buffer_;
  size_t size_ = 0;
  bool ready_ = false;
  std::optional<Error> failed_;
};

class ContinuedSource final : public BodySource {
 public:
  enum class From { kStore, kRelay };
  ContinuedSource(SessionDeps& deps, const http::RequestHead& request, const Classified& classified, StoredHeadPtr head,
                  http::ByteRange range, std::unique_ptr<BodySource> first, From from)
      : deps_(deps),
        request_(request),
        classified_(classified),
        head_(std::move(head)),
        from_(from),
        left_(range),
        first_(std::move(first)) {}
  ~ContinuedSource() override {
    if (rest_ && exchange_->head.keep_alive && exchange_->connection->body_done())
      deps_.pool.release(exchange_->origin, std::move(exchange_->connection));
  }

  std::optional<Result<PinnedBytes>> try_next() override {
    if (failed_) return Result<PinnedBytes>(*failed_);
    if (rest_) return rest_->try_next();
    auto next = lost_ ? std::nullopt : first_->try_next();
    if (next && *next) left_.begin += next->value().bytes.size();
    lost_ |= next && !*next && (from_ == From::kStore || next->error().remedy == Remedy::kRetryHere);
    return lost_ ? std::nullopt : std::move(next);
  }
  net::Task<> wait() override {
    if (rest_)
      co_await rest_->wait();
    else if (lost_)
      co_await ask_for_rest();
    else
      co_await first_->wait();
  }

 private:
  net::Task<> ask_for_rest() {
    first_.reset();
    // First, so that whoever comes next finds the source instead of the same broken bytes.
    if (from_ == From::kStore) co_await deps_.store.drop(classified_.key, head_);
    const http::RequestHead asked = upstream_rest_request(request_, *head_, left_, deps_.loop_id);
    auto done = co_await exchange(deps_.pool, classified_.origin, asked, nullptr);
    if (!done || !completes(done.value().head, *head_, left_)) {
      failed_ = Error{Remedy::kRetryLater, "the rest of a body is lost, and the source does not send it again"};
      co_return;
    }
    deps_.metrics.continued.add();
    exchange_ = std::move(done.value());
    rest_ = make_relay_source(*exchange_->connection, deps_.clock);
  }

  SessionDeps& deps_;
  const http::RequestHead& request_;
  const Classified& classified_;
  const StoredHeadPtr head_;
  const From from_;
  http::ByteRange left_;  // not handed out yet
  std::unique_ptr<BodySource> first_;
  bool lost_ = false;
  std::optional<Exchange> exchange_;
  std::unique_ptr<BodySource> rest_;
  std::optional<Error> failed_;
};

}  // namespace

std::unique_ptr<BodySource> make_relay_source(Connection& connection, const Clock& clock) {
  return std::make_unique<RelaySource>(connection, clock);
}

bool may_continue(const StoredHead& head, const Classified& classified) {
  return head.strong() && head.status < 300 && !classified.head && !classified.control.only_if_cached;
}

std::unique_ptr<BodySource> make_continued_source(SessionDeps& deps, const http::RequestHead& request,
                                                  const Classified& classified, StoredHeadPtr head, PinnedBody body) {
  const http::ByteRange range = body.range;
  return std::make_unique<ContinuedSource>(deps, request, classified, std::move(head), range,
                                           make_pinned_source(deps.store, std::move(body)),
                                           ContinuedSource::From::kStore);
}

std::unique_ptr<BodySource> make_continued_reader(SessionDeps& deps, const http::RequestHead& request,
                                                  const Classified& classified, StoredHeadPtr head,
                                                  http::ByteRange range, std::unique_ptr<BodySource> reader) {
  return std::make_unique<ContinuedSource>(deps, request, classified, std::move(head), range, std::move(reader),
                                           ContinuedSource::From::kRelay);
}

}  // namespace nezha::cache
