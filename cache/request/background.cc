#include "cache/request/background.h"

#include "cache/request/asking.h"

namespace nezha::cache {
namespace {

using Lead = std::unique_ptr<FlightTable::Lead>;

net::Task<> store_new_version(SessionDeps& deps, BackgroundCheck check, http::RequestHead request, Exchange exchange,
                              std::shared_ptr<FillTicket> ticket) {
  StoredHeadPtr head =
      make_stored_head(request, check.classified, exchange.head, exchange.request_time, exchange.response_time);
  const auto end = head->total_bytes;
  const auto fill = std::make_shared<Fill>(deps.fill, check.classified.key, std::move(ticket), std::move(head), 0, end);
  co_await fill->run(deps.pool, deps.fills, std::move(exchange), nullptr);
}

net::Task<> keep_confirmed(SessionDeps& deps, const BackgroundCheck& check, const Exchange& exchange) {
  const auto head = refreshed(*check.head, exchange.head.fields, check.classified.credentials, exchange.request_time,
                              exchange.response_time);
  co_await deps.store.keep_or_drop(check.classified.key, check.head, head);
}

// `lead` marks the check as under way while it lives.
net::Task<> run_check(SessionDeps& deps, BackgroundCheck check, [[maybe_unused]] Lead lead) {
  const Classified& classified = check.classified;
  const http::RequestHead plain = without_conditions(check.request);
  const bool can_confirm = may_ask_to_confirm(plain, classified, *check.head, deps.clock.wall());
  const auto ticket = deps.store.begin_fill(classified.key);
  const http::RequestHead request = upstream_request(plain, can_confirm ? check.head.get() : nullptr, deps.loop_id);
  auto done = co_await exchange(deps.pool, classified.origin, request, nullptr);
  if (!done || done.value().head.status >= 500) co_return;  // stale until its window is over
  Exchange& got = done.value();
  if (got.head.status == 304) {
    if (can_confirm && confirms(got.head.fields, *check.head))
      co_await keep_confirmed(deps, check, got);
    else
      co_await deps.store.drop(classified.key, check.head);
    if (got.head.keep_alive) deps.pool.release(got.origin, std::move(got.connection));
    co_return;
  }
  if (store_refusal(classified, got.head, classified.upstream->freshness, got.response_time).empty())
    co_await store_new_version(deps, std::move(check), request, std::move(got), ticket);
  else
    co_await deps.store.drop(classified.key, check.head);  // there is something else now
}

}  // namespace

bool may_check_in_background(const Classified& classified) { return classified.credentials == Credentials::kNone; }

void check_in_background(SessionDeps& deps, BackgroundCheck check) {
  CacheKey mark = check.classified.key;
  mark.query += '#';  // never part of a request's key
  FlightTable::Joined joined = deps.flights.join(mark, "");
  if (!joined.lead) return;
  deps.metrics.background.add();
  // As a plain GET for all of it.
  check.classified.head = check.classified.conditional = false;
  check.classified.range.reset();
  check.classified.ranges.clear();
  deps.fills.spawn(run_check(deps, std::move(check), std::move(joined.lead)));
}

}  // namespace nezha::cache
