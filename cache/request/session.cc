// The steps of a request. Each returns the next one; what they share is in Request.
#include "cache/request/session.h"

#include <array>

#include "cache/classify/classify.h"
#include "cache/deliver/deliver.h"
#include "cache/request/answers.h"
#include "nezha/base/check.h"
#include "nezha/base/limits.h"
#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

using http::Framing;

constexpr std::chrono::seconds kLingerMax{5};
constexpr size_t kLingerBytesMax = 16 * 1024 * 1024;

// A stored or arriving response that a 304 from the source would let us send.
struct Candidate {
  StoredHeadPtr head;
  std::optional<PinnedBody> pinned;  // its bytes, in a tier
  std::shared_ptr<Fill> fill;        // or on their way
};

class Session final : public RequestSide {
 public:
  Session(SessionDeps& deps, std::unique_ptr<net::Stream> stream, bool& idle)
      : deps_(deps), client_(std::move(stream)), idle_(idle) {}

  net::Task<> run();

 private:
  enum class Step { kClassify, kLookUp, kCollapse, kForward, kPass, kDone };

  // One request.
  net::Task<bool> read_head();
  net::Task<> handle();
  Step classify_request();
  net::Task<Step> look_up();
  net::Task<Step> collapse();
  net::Task<Step> forward();
  net::Task<Step> pass();

  // Answers. Each leaves the connection ready for the next request, or closed.
  net::Task<bool> send(Delivery delivery);
  net::Task<> refuse(int status, std::string text, std::string cache_status);
  net::Task<> answer_upstream_failure(const Error& error);
  net::Task<> answer_from_store(const StoredHeadPtr& head, std::optional<PinnedBody> pinned, std::string cache_status);
  net::Task<bool> answer_from_fill(const std::shared_ptr<Fill>& fill, std::string cache_status);
  net::Task<> relay(Exchange exchange, std::string cache_status);
  net::Task<> store_and_answer(Exchange exchange, StoredHeadPtr head, std::shared_ptr<FillTicket> ticket,
                               std::string cache_status);

  net::Task<StoredHeadPtr> find_stored();
  bool answerable_from_bytes(const StoredHead& head) const;
  std::optional<http::ByteRange> wanted_range(const StoredHead& head) const;
  http::RequestHead upstream_request(const Candidate* candidate) const;
  bool needs_own_check(const StoredHead& head) const;
  bool may_add_condition(const StoredHead& head) const;
  HeadOptions options(std::string cache_status) const;
  net::Task<bool> skip_request_body();
  net::Task<> linger();

  // RequestSide: the client's half of a relayed request.
  bool has_body() const override { return request_.framing.kind != Framing::Kind::kNone; }
  bool expects_continue() const override;
  Framing framing() const override { return request_.framing; }
  net::Task<Result<size_t>> read_body(std::span<char> into) override;
  net::Task<Result<void>> interim(const http::ResponseHead& head) override;

  SessionDeps& deps_;
  Connection client_;
  bool& idle_;
  std::shared_ptr<const Routes> routes_;
  uint64_t routes_version_ = 0;

  http::RequestHead request_;
  Classified classified_;
  Candidate candidate_;
  std::unique_ptr<FlightTable::Lead> lead_;
  const char* forward_reason_ = "uri-miss";
  bool open_ = true;           // the connection goes on after this answer
  bool looked_again_ = false;  // this request came back to the store from a flight, which it does once
  bool client_broke_ = false;  // its request body ended early or is not valid
  bool answered_ = false;      // a final head went out
};

HeadOptions Session::options(std::string cache_status) const {
  return {std::move(cache_status), !open_, deps_.clock.wall()};
}

net::Task<bool> Session::read_head() {
  net::Stream& stream = client_.stream();
  net::ScopedDeadline deadline(stream, deps_.clock.now() + limits::kClientIdleTimeout);
  idle_ = true;
  const Result<bool> first = co_await client_.await_bytes();
  idle_ = false;
  if (!first || !first.value()) co_return false;
  stream.set_deadline(deps_.clock.now() + limits::kHeadTimeout);
  const Result<http::HeadStep> step = co_await client_.read_request_head(request_);
  if (!step || step.value().kind == http::HeadStep::Kind::kNeedMore) co_return false;
  if (step.value().kind == http::HeadStep::Kind::kDone) co_return true;
  request_ = {};
  open_ = false;
  co_await refuse(step.value().status, step.value().reason, "detail=bad-request");
  co_return false;
}

net::Task<> Session::run() {
  // g++ 12 miscompiles a co_await behind && (its operand's temporaries are lost): such values are named first.
  while (open_ && !deps_.draining) {
    answered_ = client_broke_ = looked_again_ = false;
    const bool got_head = co_await read_head();
    if (!got_head) break;
    open_ = request_.keep_alive && request_.minor_version >= 1 && !deps_.draining;
    candidate_ = {};
    forward_reason_ = "uri-miss";
    client_.begin_body(request_.framing);
    co_await handle();
    lead_.reset();
    // A body that the answer did not need is in the way of the next request.
    if (open_ && !client_.body_done()) open_ = co_await skip_request_body();
  }
  if (answered_) co_await linger();
  client_.stream().close(false);
}

// Closing over unread bytes makes the kernel reset the connection, and the client may lose the answer it was just sent:
// what still comes is read away for a while (RFC 9112 §9.6).
net::Task<> Session::linger() {
  net::Stream& stream = client_.stream();
  stream.shutdown_send();
  const net::ScopedDeadline deadline(stream, deps_.clock.now() + kLingerMax);
  std::vector<char> buffer(limits::kRelayBytes);
  for (size_t total = 0; total < kLingerBytesMax;) {
    const auto got = co_await stream.read_some(buffer);
    if (!got || got.value() == 0) co_return;
    total += got.value();
  }
}

// request_fsm: the way of one request through the stages.
net::Task<> Session::handle() {
  Step step = Step::kClassify;
  while (step != Step::kDone) {
    switch (step) {
      case Step::kClassify:
        step = classify_request();
        break;
      case Step::kLookUp:
        step = co_await look_up();
        break;
      case Step::kCollapse:
        step = co_await collapse();
        break;
      case Step::kForward:
        step = co_await forward();
        break;
      case Step::kPass:
        step = co_await pass();
        break;
      case Step::kDone:
        break;
    }
  }
  if (classified_.kind == Classified::Kind::kRefuse)
    co_await refuse(classified_.status, classified_.reason, "detail=refused");
}

Session::Step Session::classify_request() {
  if (const uint64_t version = deps_.routes.version(); version != routes_version_) {
    routes_ = deps_.routes.current();
    routes_version_ = version;
  }
  classified_ = classify(request_, *routes_, deps_.loop_id);
  switch (classified_.kind) {
    case Classified::Kind::kRefuse:
      return Step::kDone;
    case Classified::Kind::kPass:
      return Step::kPass;
    case Classified::Kind::kLookUp:
      return Step::kLookUp;
  }
  return Step::kDone;
}

bool Session::answerable_from_bytes(const StoredHead& head) const { return head.total_bytes.has_value(); }

// The bytes this request asks of the representation; nothing when the range cannot be satisfied.
std::optional<http::ByteRange> Session::wanted_range(const StoredHead& head) const {
  const uint64_t total = *head.total_bytes;
  if (classified_.range && http::if_range_holds(request_.fields, head.fields, deps_.clock.wall()))
    return classified_.range->resolve(total);
  return http::ByteRange{0, total};
}

// The stored response that this request selects, brought in from its medium if need be.
net::Task<StoredHeadPtr> Session::find_stored() {
  bool must_load = false;
  StoredHeadPtr head = deps_.store.find_now(classified_.key, request_.fields, must_load);
  if (must_load) head = co_await deps_.store.find(classified_.key, request_.fields);
  deps_.store.note_request(classified_.key, head);
  co_return head;
}

net::Task<Session::Step> Session::look_up() {
  const StoredHeadPtr head = co_await find_stored();
  if (head && answerable_from_bytes(*head)) {
    const auto range = classified_.head ? std::optional(http::ByteRange{}) : wanted_range(*head);
    std::optional<PinnedBody> pinned;
    if (range) pinned = deps_.store.pin(classified_.key, head, *range);
    const bool usable = !range || pinned;
    const Reuse reuse = reuse_of(*head, classified_, classified_.upstream->freshness, deps_.clock.wall());
    if (usable && reuse.kind == Reuse::Kind::kServe) {
      std::string status = hit_status(reuse.fresh_for);
      co_await answer_from_store(head, std::move(pinned), std::move(status));
      co_return Step::kDone;
    }
    forward_reason_ = usable ? "stale" : "partial";
    // A range that cannot be satisfied is the source's to refuse when it has to be asked anyway.
    if (usable && range) candidate_ = {head, std::move(pinned), nullptr};
  }
  if (classified_.control.only_if_cached) {
    co_await refuse(504, "only-if-cached, and nothing stored may be used", "detail=only-if-cached");
    co_return Step::kDone;
  }
  const bool collapsible = !classified_.head && !classified_.range && !classified_.multiple_ranges &&
                           !classified_.conditional && !candidate_.head;
  co_return collapsible ? Step::kCollapse : Step::kForward;
}

bool Session::needs_own_check(const StoredHead& head) const {
  const config::Freshness& freshness = classified_.upstream->freshness;
  return classified_.credentials != Credentials::kNone || authorise_each(head, freshness) ||
         classified_.control.no_cache || freshness.mode == config::Freshness::Mode::kRevalidate;
}

net::Task<Session::Step> Session::collapse() {
  FlightTable::Joined joined = deps_.flights.join(classified_.key);
  if (joined.lead) {
    lead_ = std::move(joined.lead);
    co_return Step::kForward;
  }
  const Flight::Outcome outcome = co_await FlightTable::wait(joined.flight);
  if (outcome.failed) {
    co_await answer_upstream_failure(*outcome.failed);
    co_return Step::kDone;
  }
  if (!outcome.fill || !selects(*outcome.fill->head(), request_.fields)) co_return Step::kForward;
  // The object was written since that fill began: its bytes are for those who asked before.
  if (outcome.fill->superseded()) co_return Step::kForward;
  // No check of one's own: the answer under way may be reused as if it were stored (RFC 9111 §4).
  const Reuse reuse = reuse_of(*outcome.fill->head(), classified_, classified_.upstream->freshness, deps_.clock.wall());
  if (!needs_own_check(*outcome.fill->head()) && reuse.kind == Reuse::Kind::kServe) {
    const bool answered = co_await answer_from_fill(outcome.fill, "fwd=uri-miss; collapsed");
    if (answered) co_return Step::kDone;
    // A fill that takes no more readers has usually just been published.
    if (!looked_again_) {
      looked_again_ = true;
      co_return Step::kLookUp;
    }
  } else if (outcome.fill->head()->strong()) {
    candidate_ = {outcome.fill->head(), std::nullopt, outcome.fill};
  }
  co_return Step::kForward;
}

// The request as it goes to the source: everything end-to-end byte for byte, plus our marks and one unsigned condition.
http::RequestHead Session::upstream_request(const Candidate* candidate) const {
  http::RequestHead out = request_;
  if (!out.target.starts_with('/')) {  // absolute-form becomes origin-form
    const size_t authority = out.target.find("://") + 3;
    const size_t end = std::min(out.target.find_first_of("/?", authority), out.target.size());
    const std::string host = out.target.substr(authority, end - authority);
    out.fields.set("Host", host);
    out.target.erase(0, end);
    if (!out.target.starts_with('/')) out.target.insert(0, "/");
  }
  http::remove_hop_by_hop(out.fields);
  if (out.framing.kind == Framing::Kind::kChunked) out.fields.add("Transfer-Encoding", "chunked");
  if (candidate) {
    const auto modified = candidate->head->fields.find("Last-Modified");
    if (candidate->head->etag)
      out.fields.add("If-None-Match", candidate->head->etag->text);
    else if (modified)
      out.fields.add("If-Modified-Since", *modified);
  }
  out.fields.add("Via", "1.1 nezha");
  add_loop_mark(out.fields, deps_.loop_id);
  return out;
}

// Whether our If-None-Match may stand beside the client's own conditions. If-Match with the stored ETag asks for
// exactly the bytes we hold: current S3 clients sign it into every part of a download. Others are the source's to
// judge.
bool Session::may_add_condition(const StoredHead& head) const {
  // Answers made for two users may carry one date or weak tag: a 304 would not say whose bytes it means.
  if (!head.strong() && authorise_each(head, classified_.upstream->freshness)) return false;
  if (!classified_.conditional) return true;
  for (const auto name : {"If-None-Match", "If-Modified-Since", "If-Unmodified-Since"}) {
    if (request_.fields.has(name)) return false;
  }
  const auto outcome = http::evaluate_preconditions(request_.fields, head.fields, deps_.clock.wall());
  return head.strong() && outcome == http::Precondition::kProceed;
}

// A 304 that names another strong entity tag is not about the bytes we hold (RFC 9111 §4.3.4).
bool confirms(const http::Fields& not_modified, const StoredHead& stored) {
  const auto text = not_modified.find("ETag");
  const auto etag = text ? http::parse_entity_tag(*text) : std::nullopt;
  return !etag || etag->weak() || !stored.strong() || http::strong_match(*etag, *stored.etag);
}

net::Task<Session::Step> Session::forward() {
  const bool has_validator = candidate_.head && (candidate_.head->etag || candidate_.head->fields.has("Last-Modified"));
  const bool ranges_need_strong = classified_.range && candidate_.head && !candidate_.head->strong();
  const bool may_ask = has_validator && may_add_condition(*candidate_.head);
  const bool revalidate = may_ask && !ranges_need_strong && !classified_.multiple_ranges;
  const auto ticket = deps_.store.begin_fill(classified_.key);
  const http::RequestHead request = upstream_request(revalidate ? &candidate_ : nullptr);
  auto done = co_await exchange(deps_.pool, classified_.origin, request, this);
  if (!done) {
    if (lead_) lead_->fail(done.error());
    co_await answer_upstream_failure(done.error());
    co_return Step::kDone;
  }
  Exchange& got = done.value();
  if (got.head.status == 304 && revalidate) {
    if (got.head.keep_alive) deps_.pool.release(got.origin, std::move(got.connection));
    if (!confirms(got.head.fields, *candidate_.head)) {
      candidate_ = {};
      co_return Step::kForward;
    }
    std::string status = std::string("fwd=") + (candidate_.fill ? "uri-miss" : "stale") + "; fwd-status=304" +
                         (candidate_.fill ? "; collapsed" : "");
    if (candidate_.fill) {
      const bool answered = co_await answer_from_fill(candidate_.fill, std::move(status));
      if (answered) co_return Step::kDone;
    } else {
      const auto head =
          refreshed(*candidate_.head, got.head.fields, classified_.credentials, got.request_time, got.response_time);
      if (may_stay(*candidate_.head, *head))
        co_await deps_.store.refresh(classified_.key, candidate_.head, head);
      else
        co_await deps_.store.drop(classified_.key, candidate_.head);
      co_await answer_from_store(head, std::move(candidate_.pinned), std::move(status));
      co_return Step::kDone;
    }
    candidate_ = {};
    co_return Step::kForward;  // the bytes went away meanwhile: ask again, without a condition
  }
  const std::string fwd =
      std::string("fwd=") + forward_reason_ + (revalidate ? "; fwd-status=" + std::to_string(got.head.status) : "");
  const std::string refusal = store_refusal(classified_, got.head, classified_.upstream->freshness, got.response_time);
  if (!refusal.empty()) {
    if (lead_) lead_->land();
    deps_.metrics.pass.add();
    std::string status = fwd + "; detail=" + refusal;
    co_await relay(std::move(got), std::move(status));
    co_return Step::kDone;
  }
  const auto head = make_stored_head(request, classified_, got.head, got.request_time, got.response_time);
  std::string status = fwd + "; stored";
  co_await store_and_answer(std::move(got), head, ticket, std::move(status));
  co_return Step::kDone;
}

// A fill with everything it needs until it has ended.
net::Task<> run_fill(std::shared_ptr<Fill> fill, UpstreamPool& pool, Exchange exchange,
                     std::unique_ptr<FlightTable::Lead> lead) {
  co_await fill->run(pool, std::move(exchange));
  if (lead) lead->land();
}

net::Task<> Session::store_and_answer(Exchange exchange, StoredHeadPtr head, std::shared_ptr<FillTicket> ticket,
                                      std::string cache_status) {
  uint64_t begin = 0;
  std::optional<uint64_t> end = head->total_bytes;
  if (exchange.head.status == 206) {
    const auto range = http::parse_content_range(*exchange.head.fields.find("Content-Range"));
    begin = range->range->begin;
    end = range->range->end;
  }
  const auto fill = std::make_shared<Fill>(deps_.fill, classified_.key, std::move(ticket), std::move(head), begin, end);
  Delivery delivery;
  delivery.body = fill->reader(begin);
  const RelayFraming framing = relay_framing(exchange.head, request_.minor_version);
  if (framing.close) open_ = false;
  delivery.chunked = framing.chunked;
  delivery.head = relayed_head_text(exchange.head, framing, options(std::move(cache_status)));
  if (lead_) lead_->fill(fill);
  deps_.fills.spawn(run_fill(fill, deps_.pool, std::move(exchange), std::move(lead_)));
  deps_.metrics.miss.add();
  co_await send(std::move(delivery));
}

net::Task<> Session::answer_from_store(const StoredHeadPtr& head, std::optional<PinnedBody> pinned,
                                       std::string cache_status) {
  const WallTime now = deps_.clock.wall();
  obs::Counter& counter = cache_status.starts_with("hit") ? deps_.metrics.hit : deps_.metrics.revalidated;
  Delivery delivery;
  const HeadOptions opts = options(std::move(cache_status));
  const auto condition = classified_.conditional ? http::evaluate_preconditions(request_.fields, head->fields, now)
                                                 : http::Precondition::kProceed;
  if (condition != http::Precondition::kProceed) {
    delivery.head = stored_condition_text(*head, condition, opts);
  } else if (classified_.head) {
    delivery.head = stored_head_text(*head, head->total_bytes, false, opts);
  } else if (!pinned) {
    delivery.head = stored_unsatisfiable_text(*head, opts);
  } else {
    // Bytes of a part never go out as the whole, though a 304 may have brought another Last-Modified for If-Range.
    const bool whole = pinned->range == http::ByteRange{0, *head->total_bytes};
    const bool partial = !whole || (classified_.range && http::if_range_holds(request_.fields, head->fields, now));
    delivery.head = partial ? stored_partial_text(*head, pinned->range, opts)
                            : stored_head_text(*head, head->total_bytes, false, opts);
    deps_.metrics.hit_bytes.add(static_cast<double>(pinned->range.size_bytes()));
    delivery.body = make_pinned_source(deps_.store, std::move(*pinned));
  }
  counter.add();
  const bool readable = co_await send(std::move(delivery));
  // The client comes again, and then finds the source instead of the same broken bytes.
  if (!readable) co_await deps_.store.drop(classified_.key, head);
}

// False when the fill takes no more readers; nothing was sent then.
net::Task<bool> Session::answer_from_fill(const std::shared_ptr<Fill>& fill, std::string cache_status) {
  if (fill->begin() != 0) co_return false;
  auto reader = fill->reader(0);
  if (!reader) co_return false;
  const auto length = fill->head()->total_bytes;
  Delivery delivery;
  delivery.chunked = !length && request_.minor_version >= 1;
  if (!length && !delivery.chunked) open_ = false;
  delivery.head = stored_head_text(*fill->head(), length, delivery.chunked, options(std::move(cache_status)));
  delivery.body = std::move(reader);
  deps_.metrics.collapsed.add();
  co_await send(std::move(delivery));
  co_return true;
}

// Relays both ways; nothing is stored.
net::Task<Session::Step> Session::pass() {
  if (classified_.invalidates) co_await deps_.store.invalidate(classified_.key.path);
  const http::RequestHead request = upstream_request(nullptr);
  auto done = co_await exchange(deps_.pool, classified_.origin, request, this);
  // Again behind the write: a fill that began between our first invalidation and the write may hold the old bytes.
  // Whatever the answer: one that is lost, or an error, does not say that nothing was written.
  if (classified_.invalidates) co_await deps_.store.invalidate(classified_.key.path);
  if (!done && client_broke_) {
    co_await refuse(400, done.error().message, "detail=bad-request-body");
    co_return Step::kDone;
  }
  if (!done) {
    co_await answer_upstream_failure(done.error());
    co_return Step::kDone;
  }
  if (!client_.body_done()) open_ = false;  // the upstream answered early; the rest of the body is nobody's
  deps_.metrics.pass.add();
  std::string status = "fwd=bypass; detail=" + classified_.reason;
  if (classified_.reason == "method") status = "fwd=method";
  co_await relay(std::move(done.value()), std::move(status));
  co_return Step::kDone;
}

// An upstream's body straight to one client.
class RelaySource final : public BodySource {
 public:
  RelaySource(Connection& connection, const Clock& clock)
      : connection_(connection), clock_(clock), buffer_(limits::kRelayBytes) {}
  std::optional<Result<PinnedBytes>> try_next() override {
    if (!ready_) return std::nullopt;
    ready_ = false;
    if (failed_) return Result<PinnedBytes>(*failed_);
    return Result<PinnedBytes>(PinnedBytes{{buffer_.data(), size_}, nullptr, {}});
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

net::Task<> Session::relay(Exchange exchange, std::string cache_status) {
  const RelayFraming framing = relay_framing(exchange.head, request_.minor_version);
  if (framing.close) open_ = false;
  Delivery delivery;
  delivery.head = relayed_head_text(exchange.head, framing, options(std::move(cache_status)));
  delivery.chunked = framing.chunked;
  if (exchange.head.framing.kind != Framing::Kind::kNone)
    delivery.body = std::make_unique<RelaySource>(*exchange.connection, deps_.clock);
  co_await send(std::move(delivery));
  if (exchange.head.keep_alive && exchange.connection->body_done())
    deps_.pool.release(exchange.origin, std::move(exchange.connection));
}

// False when the store's own bytes could not be read.
net::Task<bool> Session::send(Delivery delivery) {
  NEZHA_CHECK(!answered_, "one final answer per request");
  answered_ = true;
  uint64_t sent_bytes = 0;
  const Result<void> sent =
      co_await deliver(client_.stream(), std::move(delivery), deps_.send_meter, deps_.clock, sent_bytes);
  deps_.metrics.sent_bytes.add(static_cast<double>(sent_bytes));
  if (sent) co_return true;
  // Never a clean short end: the client must be able to tell that the body is not whole.
  deps_.metrics.aborted.add();
  deps_.log.debug("answer aborted", {{"host", classified_.key.path.substr(0, classified_.key.path.find('/'))},
                                     {"reason", sent.error().message}});
  client_.stream().close(true);
  open_ = false;
  answered_ = false;
  co_return sent.error().remedy != Remedy::kGiveUp;
}

net::Task<> Session::refuse(int status, std::string text, std::string cache_status) {
  if (status < 500 && status != 421) open_ = false;
  if (!client_.body_done()) open_ = false;
  deps_.metrics.refused.add();
  Delivery delivery;
  delivery.head = own_answer(status, text, request_.method != "HEAD", options(std::move(cache_status)));
  co_await send(std::move(delivery));
}

net::Task<> Session::answer_upstream_failure(const Error& error) {
  if (!client_.body_done()) open_ = false;
  deps_.metrics.error.add();
  deps_.log.warning("upstream failed", {{"host", classified_.key.path.substr(0, classified_.key.path.find('/'))},
                                        {"reason", error.message}});
  const bool timed_out = error.message.find("timed out") != std::string::npos ||
                         error.message.find("Timeout") != std::string::npos;  // c-ares' word
  Delivery delivery;
  delivery.head = own_answer(timed_out ? 504 : 502, error.message, request_.method != "HEAD",
                             options("fwd=uri-miss; detail=upstream-failed"));
  co_await send(std::move(delivery));
}

bool Session::expects_continue() const {
  const auto expect = request_.fields.find("Expect");
  return expect && request_.minor_version >= 1 && iequals(*expect, "100-continue");
}

net::Task<Result<size_t>> Session::read_body(std::span<char> into) {
  const net::ScopedDeadline deadline(client_.stream(), deps_.clock.now() + limits::kBodyStallTimeout);
  auto got = co_await client_.read_body(into);
  client_broke_ |= !got;
  co_return got;
}

net::Task<Result<void>> Session::interim(const http::ResponseHead& head) {
  if (request_.minor_version == 0) co_return ok();
  http::ResponseHead copy = head;
  http::remove_hop_by_hop(copy.fields);
  const std::string text = http::serialise(copy);
  const std::array<std::string_view, 1> pieces{text};
  const net::ScopedDeadline deadline(client_.stream(), deps_.clock.now() + limits::kBodyStallTimeout);
  const Result<void> sent = co_await client_.stream().write(pieces);
  // Others may wait for this answer: that its first reader left is seen when the answer is sent.
  if (!has_body()) co_return ok();
  co_return sent;
}

// Reads a small rest of a request body away; a large one costs more than a new connection.
net::Task<bool> Session::skip_request_body() {
  std::vector<char> buffer(limits::kRelayBytes);
  size_t total = 0;
  while (!client_.body_done()) {
    const auto got = co_await read_body(buffer);
    if (!got || (total += got.value()) > limits::kRelayBytes * 4) co_return false;
  }
  co_return true;
}

obs::Counter& requests(obs::Metrics& metrics, const char* result) {
  return metrics.counter("nezha_cache_requests_total", "Requests by how they were answered", {{"result", result}});
}

}  // namespace

RequestMetrics::RequestMetrics(obs::Metrics& metrics)
    : hit(requests(metrics, "hit")),
      revalidated(requests(metrics, "revalidated")),
      collapsed(requests(metrics, "collapsed")),
      miss(requests(metrics, "miss")),
      pass(requests(metrics, "pass")),
      refused(requests(metrics, "refused")),
      error(requests(metrics, "error")),
      aborted(metrics.counter("nezha_cache_aborted_answers_total",
                              "Answers cut short by a reset, because the client left or the source failed")),
      sent_bytes(metrics.counter("nezha_cache_sent_bytes_total", "Bytes of answers taken by the kernel")),
      hit_bytes(metrics.counter("nezha_cache_hit_bytes_total", "Body bytes answered from the store")) {}

net::Task<> run_session(SessionDeps& deps, std::unique_ptr<net::Stream> stream, bool& idle) {
  Session session(deps, std::move(stream), idle);
  co_await session.run();
}

}  // namespace nezha::cache
