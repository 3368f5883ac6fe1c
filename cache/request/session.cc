// The steps of a request. Each returns the next one; what they share is in Session.
#include "cache/request/session.h"

#include "cache/classify/object_paths.h"
#include "cache/credentials/known_reader.h"
#include "cache/request/answering.h"
#include "cache/request/asking.h"
#include "cache/request/background.h"
#include "cache/request/bulk_delete.h"
#include "cache/request/signed_ranges.h"
#include "cache/request/write_through.h"
#include "nezha/base/check.h"
#include "nezha/base/limits.h"
#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

// How long the source's word on a known reader counts at most.
constexpr std::chrono::seconds kApprovalAgeMax{3600};

class Session {
 public:
  Session(SessionDeps& deps, std::unique_ptr<net::Stream> stream, bool& idle, Arrival arrival)
      : deps_(deps),
        client_(deps, std::move(stream)),
        answering_(deps, client_, classified_),
        idle_(idle),
        arrival_(std::move(arrival)) {}

  net::Task<> run();

 private:
  enum class Step { kClassify, kLookUp, kCollapse, kComplete, kForward, kPass, kDone };

  // One request.
  bool answer_now();
  net::Task<> handle();
  Step classify_request();
  net::Task<Step> look_up();
  net::Task<Step> collapse();
  net::Task<Step> complete();
  net::Task<Step> forward();
  net::Task<Step> pass();

  // What they are made of.
  net::Task<StoredHeadPtr> find_stored();
  net::Task<bool> first_bytes_ready();
  Reuse reuse_now(WallTime now) const;  // of known_
  net::Task<> drop(StoredHeadPtr held);
  std::optional<Selected> select(const StoredHeadPtr& head, WallTime now);
  std::optional<std::vector<PinnedBody>> pin(const StoredHeadPtr& head, const std::vector<http::ByteRange>& ranges);
  net::Task<Step> confirmed(Exchange exchange);
  net::Task<Step> confirmed_under_way(Exchange exchange);
  net::Task<> take(Exchange exchange, http::RequestHead request, std::shared_ptr<FillTicket> ticket,
                   std::string cache_status);
  std::optional<Completion> completion_with(const std::shared_ptr<Fill>& fill);
  net::Task<Step> take_rest(Exchange exchange, std::shared_ptr<FillTicket> ticket, http::ByteRange rest);
  net::Task<> serve_stale(std::string cache_status);
  net::Task<> freshen(const Exchange& exchange);
  net::Task<> invalidate_named(const http::ResponseHead& answer);
  net::Task<> invalidate_written();
  void start_fill(const std::shared_ptr<Fill>& fill, Exchange exchange, std::unique_ptr<RangeSource> more);

  // Readers whose key the cache has.
  std::shared_ptr<const KeySet> keys() const;
  std::optional<KnownReader> reader() const;
  bool is_approved(const StoredHead& head) const;
  void note_approval(const StoredHead& head);
  void refuse_approval(int status);
  void end_approvals(int status);

  const config::Freshness& freshness() const { return classified_.upstream->freshness; }
  bool may_serve_stale(SourceFailure failure) const;
  const http::RequestHead& request() const { return client_.request(); }

  SessionDeps& deps_;
  ClientSide client_;
  Classified classified_;
  Answering answering_;
  bool& idle_;
  const Arrival arrival_;
  std::shared_ptr<const Routes> routes_;
  uint64_t routes_version_ = 0;

  StoredHeadPtr known_;               // what is stored for this request, in whatever state
  std::optional<Selected> selected_;  // its bytes, when all that is wanted is there
  std::shared_ptr<Fill> under_way_;   // or a response on its way, which a 304 would let us send
  std::unique_ptr<FlightTable::Lead> lead_;
  std::string forward_reason_;  // RFC 9211 §2.2
  Step first_step_ = Step::kClassify;
  bool looked_up_ = false;     // known_ is what the store has, just now
  std::string variant_;        // known once another variant was seen on its way
  SteadyTime asked_at_{};      // when the source was last asked for this request
  bool looked_again_ = false;  // this request came back to the store from a flight, which it does once
};

net::Task<> Session::run() {
  // g++ 12 miscompiles a co_await behind && (its operand's temporaries are lost): such values are named first.
  while (client_.open() && !deps_.draining) {
    const bool got_request = co_await client_.read_request(idle_);
    if (!got_request) break;
    const bool answered = answer_now();
    if (!answered) co_await handle();
    if (client_.is_rest()) co_await answering_.finish_now(std::move(*selected_));
    lead_.reset();
    selected_.reset();  // a connection that rests holds nothing in place
    under_way_.reset();
    if (!client_.body_done()) co_await client_.finish_request();
  }
  co_await client_.end();
}

// The short way, without a coroutine: a hit whose first bytes are at hand. False: nothing was sent, handle() it.
bool Session::answer_now() {
  looked_again_ = looked_up_ = false;
  variant_.clear();
  known_.reset();
  forward_reason_ = "uri-miss";
  first_step_ = classify_request();
  if (first_step_ != Step::kLookUp) return false;
  bool must_load = false;
  known_ = deps_.store.find_now(classified_.key, request().fields, must_load);
  if (!must_load) deps_.store.note_request(classified_.key, known_);
  looked_up_ = !must_load;
  if (!known_) return false;
  const WallTime now = deps_.clock.wall();
  selected_ = select(known_, now);
  const Reuse reuse = reuse_now(now);
  if (!selected_ || reuse.kind != Reuse::Kind::kServe) return false;
  return answering_.from_store_now(*selected_, hit_status(reuse.fresh_for), deps_.metrics.hit, now);
}

// request_fsm: the way of one request through the stages.
net::Task<> Session::handle() {
  Step step = first_step_;
  while (step != Step::kDone) {
    switch (step) {
      case Step::kClassify:
      case Step::kDone:
        break;
      case Step::kLookUp:
        step = co_await look_up();
        break;
      case Step::kCollapse:
        step = co_await collapse();
        break;
      case Step::kComplete:
        step = co_await complete();
        break;
      case Step::kForward:
        step = co_await forward();
        break;
      case Step::kPass:
        step = co_await pass();
        break;
    }
  }
  if (classified_.kind == Classified::Kind::kRefuse)
    co_await client_.refuse(classified_.status, classified_.reason, "detail=refused");
}

Session::Step Session::classify_request() {
  if (const uint64_t version = deps_.routes.version(); version != routes_version_) {
    routes_ = deps_.routes.current();
    routes_version_ = version;
  }
  classified_ = classify(request(), *routes_, deps_.loop_id, arrival_);
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

// The stored response that this request selects, brought in from its medium if need be.
net::Task<StoredHeadPtr> Session::find_stored() {
  if (looked_up_) {  // answer_now() has been there
    looked_up_ = false;
    co_return known_;
  }
  bool must_load = false;
  StoredHeadPtr head = deps_.store.find_now(classified_.key, request().fields, must_load);
  if (must_load) head = co_await deps_.store.find(classified_.key, request().fields);
  if (!looked_again_) deps_.store.note_request(classified_.key, head);
  co_return head;
}

net::Task<> Session::drop(StoredHeadPtr held) { co_await deps_.store.drop(classified_.key, held); }

// The one place where bytes are looked for in the store.
std::optional<std::vector<PinnedBody>> Session::pin(const StoredHeadPtr& head,
                                                    const std::vector<http::ByteRange>& ranges) {
  std::vector<PinnedBody> bodies;
  for (const auto& range : ranges) {
    auto pinned = deps_.store.pin(classified_.key, head, range);
    if (!pinned) return std::nullopt;
    bodies.push_back(std::move(*pinned));
  }
  return bodies;
}

std::optional<Selected> Session::select(const StoredHeadPtr& head, WallTime now) {
  auto wanted = wanted_of(classified_, request().fields, *head, now);
  if (!wanted) return std::nullopt;
  auto bodies = pin(head, wanted->ranges);
  if (!bodies) return std::nullopt;
  return Selected{head, std::move(*wanted), std::move(*bodies)};
}

// The first bytes of what is selected are brought in before a head promises them. False: they are lost, and the
// response is dropped: this request is a miss.
net::Task<bool> Session::first_bytes_ready() {
  if (!selected_) co_return true;
  for (const auto& body : selected_->bodies) {
    if (body.pieces.empty() || deps_.store.is_ready(body.pieces.front())) continue;
    const Result<void> ready = co_await deps_.store.make_ready(body.pieces, 0);
    if (ready) continue;
    co_await drop(known_);
    co_return false;
  }
  co_return true;
}

Reuse Session::reuse_now(WallTime now) const {
  if (is_for_the_source_to_judge(request(), classified_, *known_, now)) return {Reuse::Kind::kRevalidate, "request"};
  return reuse_of(*known_, classified_, freshness(), now, is_approved(*known_));
}

std::shared_ptr<const KeySet> Session::keys() const {
  const std::string& secret = classified_.upstream->credentials_secret;
  return secret.empty() ? nullptr : deps_.keys.find(secret);
}

std::optional<KnownReader> Session::reader() const {
  if (classified_.credentials == Credentials::kNone) return std::nullopt;
  const auto known = keys();
  return known ? known_reader(request(), classified_.key, arrival_.tls, *known, deps_.clock.wall()) : std::nullopt;
}

// Not asked for where the source is asked in any case.
bool Session::is_approved(const StoredHead& head) const {
  if (freshness().mode == config::Freshness::Mode::kRevalidate) return false;
  if (!head.strong() || !authorise_each(head, freshness())) return false;
  const auto who = reader();
  if (!who || !who->plain) return false;
  const bool by_ttl = freshness().mode == config::Freshness::Mode::kTtl;
  const auto age_max = by_ttl ? std::min(freshness().ttl_s, kApprovalAgeMax) : kApprovalAgeMax;
  return deps_.approvals.holds(who->subject, head.etag->text, deps_.clock.now(), age_max);
}

// The source answered this request with that version, or confirmed it.
void Session::note_approval(const StoredHead& head) {
  if (!head.strong() || !authorise_each(head, freshness())) return;
  const auto who = reader();
  if (who && who->plain) deps_.approvals.note(who->subject, head.etag->text, asked_at_);
}

void Session::refuse_approval(int status) {
  if (status != 401 && status != 403) return;
  if (const auto who = reader()) deps_.approvals.refuse(who->subject, deps_.clock.now());
}

net::Task<Session::Step> Session::look_up() {
  const WallTime now = deps_.clock.wall();
  known_ = co_await find_stored();
  if (known_) {
    selected_ = select(known_, now);
    const Reuse reuse = reuse_now(now);
    const bool readable = co_await first_bytes_ready();
    if (!readable) selected_.reset();
    const bool in_background = reuse.kind == Reuse::Kind::kServeAndCheck && may_check_in_background(classified_);
    if (selected_ && (reuse.kind == Reuse::Kind::kServe || in_background)) {
      if (in_background) check_in_background(deps_, {routes_, classified_, request(), known_});
      std::string status = hit_status(reuse.fresh_for);
      co_await answering_.from_store(std::move(*selected_), std::move(status), deps_.metrics.hit);
      co_return Step::kDone;
    }
    const bool by_request = std::string_view(reuse.reason) == "request";
    forward_reason_ = !selected_ ? "partial" : by_request ? "request" : "stale";
    // A range that cannot be satisfied is the source's to refuse when it has to be asked anyway.
    if (selected_ && selected_->wanted.kind == Wanted::Kind::kUnsatisfiable) selected_.reset();
  }
  if (classified_.control.only_if_cached) {
    co_await client_.refuse(504, "only-if-cached, and nothing stored may be used", "detail=only-if-cached");
    co_return Step::kDone;
  }
  const bool plain = !classified_.head && !classified_.conditional && classified_.ranges.empty();
  co_return plain && !classified_.range && !selected_ ? Step::kCollapse : Step::kForward;
}

net::Task<Session::Step> Session::collapse() {
  FlightTable::Joined joined = deps_.flights.join(classified_.key, variant_);
  if (joined.lead) {
    lead_ = std::move(joined.lead);
    co_return known_&& classified_.credentials == Credentials::kNone ? Step::kComplete : Step::kForward;
  }
  const Flight::Outcome outcome = co_await FlightTable::wait(joined.flight);
  if (outcome.failed) {
    std::string status = "fwd=" + forward_reason_ + "; collapsed; detail=upstream-failed";
    co_await answering_.source_failed(*outcome.failed, std::move(status));
    co_return Step::kDone;
  }
  if (!outcome.fill) co_return Step::kForward;
  if (!selects(*outcome.fill->head(), request().fields)) {
    // Another variant is on its way: those who want this one gather anew, once.
    if (!variant_.empty()) co_return Step::kForward;
    variant_ = variant_of(*outcome.fill->head(), request().fields);
    co_return Step::kCollapse;
  }
  // The object was written since that fill began: its bytes are for those who asked before.
  if (outcome.fill->superseded()) co_return Step::kForward;
  // No check of one's own: the answer under way may be reused as if it were stored (RFC 9111 §4).
  const StoredHead& head = *outcome.fill->head();
  const Reuse reuse = reuse_of(head, classified_, freshness(), deps_.clock.wall(), false);
  if (!needs_own_check(classified_, head) && reuse.kind == Reuse::Kind::kServe) {
    std::string status = "fwd=" + forward_reason_ + "; collapsed";
    bool answered = false;
    if (auto completion = completion_with(outcome.fill)) {
      co_await answering_.completing(std::move(*completion), std::move(status), deps_.metrics.collapsed);
      answered = true;
    } else {
      answered = co_await answering_.from_fill(outcome.fill, std::move(status));
    }
    if (answered) co_return Step::kDone;
    // Whoever came too late for a relay gathers again: the first of them leads the next one.
    if (outcome.fill->closed()) co_return Step::kCollapse;
    // Any other fill that takes no more readers has usually just been published.
    if (!looked_again_) {
      looked_again_ = true;
      co_return Step::kLookUp;
    }
  } else if (head.strong()) {
    under_way_ = outcome.fill;
  }
  co_return Step::kForward;
}

// A part is stored: only the rest of it is asked for (RFC 9111 §3.3).
net::Task<Session::Step> Session::complete() {
  const WallTime now = deps_.clock.wall();
  const auto wanted = wanted_of(classified_, request().fields, *known_, now);
  std::optional<http::ByteRange> missing;
  if (wanted && known_->total_bytes && wanted->ranges.size() == 1)
    missing = deps_.store.missing(classified_.key, known_, wanted->ranges.front());
  const bool partly = missing && *missing != wanted->ranges.front();
  if (!partly) co_return Step::kForward;
  const http::ByteRange rest = *missing;
  // Held until the answer is put together: what the head will promise must not go meanwhile.
  const auto before = deps_.store.pin(classified_.key, known_, {0, rest.begin});
  const auto after = deps_.store.pin(classified_.key, known_, {rest.end, *known_->total_bytes});
  if (!before || !after) co_return Step::kForward;
  const auto ticket = deps_.store.begin_fill(classified_.key);
  const http::RequestHead asked = upstream_range_request(request(), *known_, rest, deps_.loop_id);
  auto done = co_await exchange(deps_.pool, classified_.origin, asked, &client_);
  if (!done) co_return Step::kForward;  // whatever failed, it is seen again there
  Exchange& got = done.value();
  if (got.head.status == 200) {  // another version, or a source without ranges
    std::string status = "fwd=partial; fwd-status=200";
    co_await take(std::move(got), asked, ticket, std::move(status));
    co_return Step::kDone;
  }
  if (!completes(got.head, *known_, rest)) co_return Step::kForward;
  const bool storable =
      may_stay(*known_, *refreshed(*known_, got.head.fields, Credentials::kNone, got.request_time, got.response_time));
  if (!storable) co_return Step::kForward;
  co_return co_await take_rest(std::move(got), ticket, rest);
}

// The whole of known_, when all that is missing of it is on its way with this fill.
std::optional<Completion> Session::completion_with(const std::shared_ptr<Fill>& fill) {
  const StoredHead& head = *fill->head();
  if (!known_ || !head.total_bytes || !fill->end()) return std::nullopt;
  if (fill->begin() == 0 && fill->end() == head.total_bytes) return std::nullopt;  // it needs no completion
  if (!head.strong() || !known_->strong() || !http::strong_match(*head.etag, *known_->etag)) return std::nullopt;
  Completion out;
  out.head = fill->head();
  out.before = deps_.store.pin(classified_.key, known_, {0, fill->begin()});
  out.after = deps_.store.pin(classified_.key, known_, {*fill->end(), *head.total_bytes});
  if (!out.before || !out.after) return std::nullopt;
  out.between = answering_.reader_of(*fill, fill->begin());
  return out.between ? std::optional(std::move(out)) : std::nullopt;
}

std::string stored_or_not(const Fill& fill) {
  return fill.refusal() ? std::string("; detail=") + fill.refusal() : "; stored";
}

net::Task<Session::Step> Session::take_rest(Exchange exchange, std::shared_ptr<FillTicket> ticket,
                                            http::ByteRange rest) {
  StoredHeadPtr head =
      refreshed(*known_, exchange.head.fields, Credentials::kNone, exchange.request_time, exchange.response_time);
  const auto fill =
      std::make_shared<Fill>(deps_.fill, classified_.key, std::move(ticket), std::move(head), rest.begin, rest.end);
  // A relay that waits behind what is stored makes its source wait, which may give up: better all of it from there.
  if (fill->refusal() && rest.begin > limits::kRelayBehindBytesMax) co_return Step::kForward;
  auto completion = completion_with(fill);
  if (!completion) co_return Step::kForward;  // dropped meanwhile, by a write: the rest belongs to nothing
  start_fill(fill, std::move(exchange), nullptr);
  std::string status = "fwd=partial; fwd-status=206" + stored_or_not(*fill);
  co_await answering_.completing(std::move(*completion), std::move(status), deps_.metrics.miss);
  co_return Step::kDone;
}

net::Task<Session::Step> Session::forward() {
  const StoredHeadPtr held = under_way_ ? under_way_->head() : selected_ ? selected_->head : nullptr;
  const bool conditional = held && may_ask_to_confirm(request(), classified_, *held, deps_.clock.wall());
  const auto ticket = deps_.store.begin_fill(classified_.key);
  const http::RequestHead asked = upstream_request(request(), conditional ? held.get() : nullptr, deps_.loop_id);
  asked_at_ = deps_.clock.now();
  auto done = co_await exchange(deps_.pool, classified_.origin, asked, &client_);
  if (!done && may_serve_stale(SourceFailure::kUnreachable)) {
    co_await serve_stale("fwd=stale; detail=source-unreachable");
    co_return Step::kDone;
  }
  if (!done) {
    if (lead_) lead_->fail(done.error());
    std::string status = "fwd=" + forward_reason_ + "; detail=upstream-failed";
    co_await answering_.source_failed(done.error(), std::move(status));
    co_return Step::kDone;
  }
  Exchange& got = done.value();
  const int status_code = got.head.status;
  if (status_code == 304 && conditional) {
    Step next = Step::kForward;
    if (under_way_)
      next = co_await confirmed_under_way(std::move(got));
    else
      next = co_await confirmed(std::move(got));
    co_return next;
  }
  refuse_approval(status_code);
  const bool server_error = status_code == 500 || (status_code >= 502 && status_code <= 504);
  if (server_error && may_serve_stale(SourceFailure::kServerError)) {
    std::string status = "fwd=stale; fwd-status=" + std::to_string(status_code) + "; detail=stale-if-error";
    co_await serve_stale(std::move(status));
    co_return Step::kDone;
  }
  std::string status = "fwd=" + forward_reason_ + (held ? "; fwd-status=" + std::to_string(status_code) : "");
  co_await take(std::move(got), asked, ticket, std::move(status));
  co_return Step::kDone;
}

bool Session::may_serve_stale(SourceFailure failure) const {
  return selected_ && cache::may_serve_stale(*selected_->head, classified_, freshness(), deps_.clock.wall(), failure);
}

net::Task<> Session::serve_stale(std::string cache_status) {
  co_await answering_.from_store(std::move(*selected_), std::move(cache_status), deps_.metrics.stale);
}

// 304 for what is stored.
net::Task<Session::Step> Session::confirmed(Exchange exchange) {
  if (exchange.head.keep_alive) deps_.pool.release(exchange.origin, std::move(exchange.connection));
  const StoredHeadPtr held = selected_->head;
  if (!confirms(exchange.head.fields, *held)) {
    selected_.reset();
    co_return Step::kForward;
  }
  const auto head =
      refreshed(*held, exchange.head.fields, classified_.credentials, exchange.request_time, exchange.response_time);
  co_await deps_.store.keep_or_drop(classified_.key, held, head);
  note_approval(*head);
  selected_->head = head;
  std::string status = "fwd=" + forward_reason_ + "; fwd-status=304";
  co_await answering_.from_store(std::move(*selected_), std::move(status), deps_.metrics.revalidated);
  co_return Step::kDone;
}

// 304 for what is on its way to the store.
net::Task<Session::Step> Session::confirmed_under_way(Exchange exchange) {
  if (exchange.head.keep_alive) deps_.pool.release(exchange.origin, std::move(exchange.connection));
  const auto fill = std::move(under_way_);
  if (confirms(exchange.head.fields, *fill->head())) {
    std::string status = "fwd=" + forward_reason_ + "; fwd-status=304; collapsed";
    const bool answered = co_await answering_.from_fill(fill, std::move(status));
    if (answered) co_return Step::kDone;
  }
  co_return Step::kForward;  // the bytes went away meanwhile: ask again, without a condition
}

// A final answer that is not about what we hold: stored and sent on, or sent on only.
net::Task<> Session::take(Exchange exchange, http::RequestHead asked, std::shared_ptr<FillTicket> ticket,
                          std::string cache_status) {
  const std::string refusal = store_refusal(classified_, exchange.head, freshness(), exchange.response_time);
  if (!refusal.empty()) {
    if (lead_) lead_->land();
    co_await freshen(exchange);
    deps_.metrics.pass.add();
    cache_status += "; detail=" + refusal;
    co_await answering_.relay(std::move(exchange), std::move(cache_status));
    co_return;
  }
  StoredHeadPtr head =
      make_stored_head(asked, classified_, exchange.head, exchange.request_time, exchange.response_time);
  http::ByteRange range{0, 0};
  std::optional<uint64_t> end = head->total_bytes;
  if (exchange.head.status == 206) {
    range = *part_of(classified_, exchange.head)->range;
    end = range.end;
  }
  const auto fill =
      std::make_shared<Fill>(deps_.fill, classified_.key, std::move(ticket), std::move(head), range.begin, end);
  auto reader = answering_.reader_of(*fill, range.begin);
  const http::ResponseHead relayed = exchange.head;
  note_approval(*fill->head());
  // Who asks for a range with an end asks for others beside it: such readers bring their own connections.
  const bool whole = !classified_.range || !classified_.range->last;
  const auto known = whole && may_sign_for(classified_) ? keys() : nullptr;
  auto more = known ? make_signed_ranges(deps_.pool, classified_.origin, request(), fill->head(), known, deps_.loop_id)
                    : nullptr;
  start_fill(fill, std::move(exchange), std::move(more));
  cache_status += stored_or_not(*fill);
  co_await answering_.while_filling(relayed, std::move(reader), std::move(cache_status));
}

// A fill with everything it needs until it has ended.
net::Task<> run_fill(std::shared_ptr<Fill> fill, UpstreamPool& pool, net::Gate& gate, Exchange exchange,
                     std::unique_ptr<RangeSource> more, std::unique_ptr<FlightTable::Lead> lead) {
  co_await fill->run(pool, gate, std::move(exchange), std::move(more));
  if (lead) lead->land();
}

net::Task<> watch_readers(std::weak_ptr<Fill> relay, UpstreamPool& pool) {
  for (bool goes_on = true; goes_on;) {
    co_await pool.loop().sleep(limits::kSlowReaderLook);
    const auto fill = relay.lock();
    goes_on = fill && fill->cut_slow_readers(pool.clock().now());
  }
}

void Session::start_fill(const std::shared_ptr<Fill>& fill, Exchange exchange, std::unique_ptr<RangeSource> more) {
  if ((lead_ && fill->refusal()) || more) deps_.fills.spawn(watch_readers(fill, deps_.pool));
  if (lead_) lead_->fill(fill);
  deps_.fills.spawn(run_fill(fill, deps_.pool, deps_.fills, std::move(exchange), std::move(more), std::move(lead_)));
}

// What an answer that is only relayed says about what is stored: a 200 to HEAD (RFC 9111 §4.3.5), or a 304 to the
// client's own condition (§4.3.4).
net::Task<> Session::freshen(const Exchange& exchange) {
  if (!known_ || known_->status != 200) co_return;
  const http::ResponseHead& answer = exchange.head;
  const bool head_200 = classified_.head && answer.status == 200;
  const bool own_304 = answer.status == 304 && known_->strong() && answer.fields.has("ETag");
  if (!head_200 && !own_304) co_return;
  // One date or weak tag may name what two users see.
  if (!known_->strong() && authorise_each(*known_, freshness())) co_return;
  const bool same = head_200 ? is_freshened_by_head(*known_, answer) : confirms(answer.fields, *known_);
  if (!same && authorise_each(*known_, freshness())) co_return;
  if (!same && own_304) co_return;
  if (!same) {
    co_await drop(known_);
    co_return;
  }
  const auto head =
      refreshed(*known_, answer.fields, classified_.credentials, exchange.request_time, exchange.response_time);
  co_await deps_.store.keep_or_drop(classified_.key, known_, head);
}

// RFC 9111 §4.4: what a successful write names is not what it was either.
net::Task<> Session::invalidate_named(const http::ResponseHead& answer) {
  if (answer.status >= 400) co_return;
  for (const auto name : {"Location", "Content-Location"}) {
    const auto reference = answer.fields.find(name);
    const auto path = reference ? path_of_reference(classified_.key, *reference) : std::nullopt;
    if (!path) continue;
    std::vector<std::string> paths = paths_of_write(*path, *classified_.upstream);
    co_await deps_.store.invalidate(std::move(paths));
  }
}

net::Task<> Session::invalidate_written() {
  if (!classified_.invalidates) co_return;
  std::vector<std::string> paths = paths_of_write(classified_.key.path, *classified_.upstream);
  if (keys()) {
    for (const auto& path : paths) deps_.approvals.end(path, deps_.clock.now());
  }
  co_await deps_.store.invalidate(std::move(paths));
}

// What a write may have changed about who may read. `status`: of its answer, 0 when there was none.
void Session::end_approvals(int status) {
  refuse_approval(status);
  if (!classified_.invalidates || status >= 300 || !keys()) return;
  for (const auto parameter : split(classified_.key.query, '&')) {
    const auto name = parameter.substr(0, parameter.find('='));
    const bool about_rights =
        name == "acl" || name == "policy" || name == "publicAccessBlock" || name == "ownershipControls";
    if (about_rights) deps_.approvals.end_all(deps_.clock.now());
  }
}

// Relays both ways; nothing is stored.
net::Task<Session::Step> Session::pass() {
  std::optional<BulkDelete> bulk_delete;
  if (classified_.bulk_delete || classified_.form_upload) bulk_delete.emplace(deps_, client_, request(), classified_);
  co_await invalidate_written();
  const http::RequestHead asked = upstream_request(request(), nullptr, deps_.loop_id);
  RequestSide* const side = bulk_delete ? static_cast<RequestSide*>(&*bulk_delete) : &client_;
  auto done = co_await exchange(deps_.pool, classified_.origin, asked, side);
  // Again behind the write: a fill that began between our first invalidation and the write may hold the old bytes.
  // Whatever the answer: one that is lost, or an error, does not say that nothing was written.
  co_await invalidate_written();
  const int answered = done ? done.value().head.status : 0;
  end_approvals(answered);
  if (bulk_delete) co_await bulk_delete->invalidate(answered);
  if (!done && client_.broke()) {
    co_await client_.refuse(400, done.error().message, "detail=bad-request-body");
    co_return Step::kDone;
  }
  std::string status = "fwd=bypass; detail=" + classified_.reason;
  if (classified_.reason == "method") status = "fwd=method";
  if (!done) {
    status += "; detail=upstream-failed";
    co_await answering_.source_failed(done.error(), std::move(status));
    co_return Step::kDone;
  }
  if (classified_.invalidates) co_await invalidate_named(done.value().head);
  fetch_written(deps_, classified_, request(), done.value().head.status, arrival_.tls);
  if (!client_.body_done()) client_.close_after_answer();  // the upstream answered early; the rest is nobody's
  deps_.metrics.pass.add();
  co_await answering_.relay(std::move(done.value()), std::move(status));
  co_return Step::kDone;
}

}  // namespace

net::Task<> run_session(SessionDeps& deps, std::unique_ptr<net::Stream> stream, bool& idle, Arrival arrival) {
  Session session(deps, std::move(stream), idle, std::move(arrival));
  co_await session.run();
}

}  // namespace nezha::cache
