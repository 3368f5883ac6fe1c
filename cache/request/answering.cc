#include "cache/request/answering.h"

#include "cache/classify/checksums.h"
#include "cache/deliver/multipart_source.h"
#include "cache/request/upstream_bodies.h"
#include "nezha/base/check.h"
#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

uint64_t size_of(const std::vector<PinnedBody>& bodies) {
  uint64_t total = 0;
  for (const auto& body : bodies) total += body.range.size_bytes();
  return total;
}

}  // namespace

Delivery Answering::from_bodies(Selected selected, const HeadOptions& options) const {
  const StoredHead& head = *selected.head;
  auto& bodies = selected.bodies;
  NEZHA_CHECK(bodies.size() == selected.wanted.ranges.size(), "every wanted range is held");
  Delivery out;
  switch (selected.wanted.kind) {
    case Wanted::Kind::kUnsatisfiable:
      out.head = stored_unsatisfiable_text(head, options);
      return out;
    case Wanted::Kind::kWhole:
      out.head = stored_head_text(head, head.total_bytes, false, options);
      out.length = head.total_bytes;
      break;
    case Wanted::Kind::kOne:
      out.head = stored_partial_text(head, bodies.front().range, options);
      out.length = bodies.front().range.size_bytes();
      break;
    case Wanted::Kind::kSeveral: {
      const auto part_type = head.fields.find("Content-Type").value_or("");
      Multipart multipart = make_multipart(deps_.store, std::move(bodies), head.total_bytes, part_type);
      out.head = stored_multipart_text(head, multipart.content_type, multipart.size_bytes, options);
      out.body = std::move(multipart.body);
      out.length = multipart.size_bytes;
      return out;
    }
  }
  if (!bodies.empty()) out.body = source_of(selected.head, std::move(bodies.front()));
  return out;
}

std::unique_ptr<BodySource> Answering::source_of(const StoredHeadPtr& head, PinnedBody body) const {
  if (!may_continue(*head, classified_)) return make_pinned_source(deps_.store, std::move(body));
  return make_continued_source(deps_, client_.request(), classified_, head, std::move(body));
}

std::unique_ptr<BodySource> Answering::reader_of(Fill& fill, uint64_t position) const {
  const StoredHeadPtr& head = fill.head();
  const auto ranges = head->fields.find("Accept-Ranges");
  const bool may_be_cut =
      fill.end() && head->total_bytes && may_continue(*head, classified_) && ranges && iequals(trim(*ranges), "bytes");
  auto reader = fill.reader(position, may_be_cut);
  if (!reader || !may_be_cut) return reader;
  return make_continued_reader(deps_, client_.request(), classified_, head, {position, *fill.end()}, std::move(reader));
}

net::Task<> Answering::from_store(Selected selected, std::string cache_status, obs::Counter& counter) {
  const StoredHeadPtr head = selected.head;
  const HeadOptions options = client_.options(std::move(cache_status));
  auto condition = http::Precondition::kProceed;
  // Conditions are for what would be a success (RFC 9110 §13.2.1).
  if (classified_.conditional && head->status < 300)
    condition = http::evaluate_preconditions(client_.request().fields, head->fields, options.now);
  Delivery delivery;
  if (condition != http::Precondition::kProceed) {
    delivery.head = stored_condition_text(*head, condition, options);
  } else {
    deps_.metrics.hit_bytes.add(static_cast<double>(size_of(selected.bodies)));
    for (const auto& body : selected.bodies) deps_.store.note_hit(classified_.key, head, body);
    delivery = from_bodies(std::move(selected), options);
  }
  counter.add();
  const bool readable = co_await client_.send(std::move(delivery));
  if (!readable) co_await deps_.store.drop(classified_.key, head);
}

bool Answering::from_store_now(const Selected& selected, std::string_view cache_status, obs::Counter& counter,
                               WallTime now) {
  if (classified_.conditional) return false;
  const StoredHead& head = *selected.head;
  const HeadOptions options{std::string(cache_status), !client_.open(), now,
                            asks_for_checksums(client_.request().fields)};
  const PinnedBody* body = selected.bodies.empty() ? nullptr : &selected.bodies.front();
  std::string text;
  if (selected.wanted.kind == Wanted::Kind::kWhole)
    text = stored_head_text(head, head.total_bytes, false, options);
  else if (selected.wanted.kind == Wanted::Kind::kOne && body)
    text = stored_partial_text(head, body->range, options);
  if (text.empty() || !client_.send_now(text, body)) return false;
  counter.add();
  if (body) deps_.store.note_hit(classified_.key, selected.head, *body);
  if (body) deps_.metrics.hit_bytes.add(static_cast<double>(body->range.size_bytes()));
  return true;
}

net::Task<> Answering::finish_now(Selected selected) {
  const StoredHeadPtr head = selected.head;
  std::unique_ptr<BodySource> source;
  uint64_t size_bytes = 0;
  if (!selected.bodies.empty()) {
    PinnedBody& body = selected.bodies.front();
    skip_bytes(body, client_.sent_of_body());
    size_bytes = body.range.size_bytes();
    source = source_of(head, std::move(body));
  }
  const bool readable = co_await client_.send_rest(std::move(source), size_bytes);
  if (!readable) co_await deps_.store.drop(classified_.key, head);
}

net::Task<bool> Answering::from_fill(std::shared_ptr<Fill> fill, std::string cache_status) {
  // One that completes a part carries less than the whole.
  const bool whole = fill->begin() == 0 && (!fill->end() || fill->end() == fill->head()->total_bytes);
  if (!whole || classified_.range || !classified_.ranges.empty()) co_return false;
  auto reader = reader_of(*fill, 0);
  if (!reader) co_return false;
  const auto length = fill->head()->total_bytes;
  Delivery delivery;
  delivery.chunked = !length && client_.request().minor_version >= 1;
  if (!length && !delivery.chunked) client_.close_after_answer();
  const HeadOptions options = client_.options(std::move(cache_status));
  delivery.head = stored_head_text(*fill->head(), length, delivery.chunked, options);
  delivery.length = length;
  delivery.body = std::move(reader);
  deps_.metrics.collapsed.add();
  co_await client_.send(std::move(delivery));
  co_return true;
}

net::Task<> Answering::while_filling(const http::ResponseHead& head, std::unique_ptr<BodySource> body,
                                     std::string cache_status) {
  const RelayFraming framing = relay_framing(head, client_.request().minor_version);
  if (framing.close) client_.close_after_answer();
  Delivery delivery;
  delivery.body = std::move(body);
  delivery.chunked = framing.chunked;
  delivery.head = relayed_head_text(head, framing, client_.options(std::move(cache_status)));
  if (head.framing.kind == http::Framing::Kind::kLength) delivery.length = head.framing.length_bytes;
  deps_.metrics.miss.add();
  co_await client_.send(std::move(delivery));
}

net::Task<> Answering::completing(Completion completion, std::string cache_status, obs::Counter& counter) {
  const HeadOptions options = client_.options(std::move(cache_status));
  const StoredHead& head = *completion.head;
  Delivery delivery;
  delivery.head = stored_head_text(head, head.total_bytes, false, options);
  delivery.length = head.total_bytes;
  std::vector<std::unique_ptr<BodySource>> sources;
  if (completion.before) sources.push_back(make_pinned_source(deps_.store, std::move(*completion.before)));
  sources.push_back(std::move(completion.between));
  if (completion.after) sources.push_back(make_pinned_source(deps_.store, std::move(*completion.after)));
  delivery.body = make_chain_source(std::move(sources));
  counter.add();
  const StoredHeadPtr kept = completion.head;
  const bool readable = co_await client_.send(std::move(delivery));
  if (!readable) co_await deps_.store.drop(classified_.key, kept);
}

net::Task<> Answering::relay(Exchange exchange, std::string cache_status) {
  const RelayFraming framing = relay_framing(exchange.head, client_.request().minor_version);
  if (framing.close) client_.close_after_answer();
  Delivery delivery;
  delivery.head = relayed_head_text(exchange.head, framing, client_.options(std::move(cache_status)));
  delivery.chunked = framing.chunked;
  if (exchange.head.framing.kind != http::Framing::Kind::kNone)
    delivery.body = make_relay_source(*exchange.connection, deps_.clock);
  co_await client_.send(std::move(delivery));
  if (exchange.head.keep_alive && exchange.connection->body_done())
    deps_.pool.release(exchange.origin, std::move(exchange.connection));
}

net::Task<> Answering::source_failed(const Error& error, std::string cache_status) {
  if (!client_.body_done()) client_.close_after_answer();
  deps_.metrics.error.add();
  deps_.log.warning("upstream failed", {{"host", classified_.key.path.substr(0, classified_.key.path.find('/'))},
                                        {"reason", error.message}});
  const int status = error.remedy == Remedy::kTimedOut ? 504 : 502;
  const bool with_body = client_.request().method != "HEAD";
  Delivery delivery;
  delivery.head = own_answer(status, error.message, with_body, client_.options(std::move(cache_status)));
  co_await client_.send(std::move(delivery));
}

}  // namespace nezha::cache
