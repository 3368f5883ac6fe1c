#include "cache/supervise/http_relay.h"

#include <array>
#include <cstdio>

#include "cache/classify/object_paths.h"
#include "cache/request/answers.h"
#include "cache/request/asking.h"
#include "nezha/base/limits.h"
#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

constexpr const char* kCacheStatus = "fwd=bypass; detail=cache-away";

class HttpRelay final : public RequestSide {
 public:
  HttpRelay(HttpRelayDeps& deps, std::unique_ptr<net::Stream> stream) : deps_(deps), client_(std::move(stream)) {}
  net::Task<> run();

  bool has_body() const override { return request_.framing.kind != http::Framing::Kind::kNone; }
  bool expects_continue() const override {
    return request_.minor_version >= 1 && iequals(request_.fields.find("Expect").value_or(""), "100-continue");
  }
  http::Framing framing() const override { return request_.framing; }
  net::Task<Result<size_t>> read_body(std::span<char> into) override {
    const net::ScopedDeadline deadline(client_.stream(), stall_deadline());
    auto got = co_await client_.read_body(into);
    client_broke_ |= !got;
    co_return got;
  }
  net::Task<Result<void>> interim(const http::ResponseHead& head) override {
    if (request_.minor_version == 0) co_return ok();
    http::ResponseHead copy = head;
    http::remove_hop_by_hop(copy.fields);
    const std::string text = http::serialise(copy);
    const Result<void> sent = co_await send(text);
    co_return sent;
  }

 private:
  net::Task<bool> read_request();
  net::Task<> answer();
  net::Task<> refuse(int status, std::string reason);
  net::Task<Result<void>> relay(Exchange exchange);
  net::Task<Result<void>> send(std::string_view bytes) {
    const std::array<std::string_view, 1> pieces{bytes};
    const Result<void> sent = co_await send_pieces(pieces);
    co_return sent;
  }
  net::Task<Result<void>> send_pieces(std::span<const std::string_view> pieces) {
    const net::ScopedDeadline deadline(client_.stream(), stall_deadline());
    const Result<void> sent = co_await client_.stream().write(pieces);
    co_return sent;
  }
  SteadyTime stall_deadline() const { return deps_.clock.now() + limits::kBodyStallTimeout; }
  std::vector<Drop> drops_of(const Result<Exchange>& done) const;

  HttpRelayDeps& deps_;
  Connection client_;
  http::RequestHead request_;
  Classified classified_;
  bool client_broke_ = false;
  bool broken_ = false;
};

net::Task<bool> HttpRelay::read_request() {
  if (deps_.draining) co_return false;
  const net::ScopedDeadline deadline(client_.stream(), deps_.clock.now() + limits::kHeadTimeout);
  deps_.resting.insert(&client_.stream());
  const Result<bool> first = co_await client_.await_bytes();
  deps_.resting.erase(&client_.stream());
  if (!first || !first.value()) co_return false;
  const Result<http::HeadStep> read = co_await client_.read_request_head(request_);
  if (!read || read.value().kind == http::HeadStep::Kind::kNeedMore) co_return false;
  if (read.value().kind == http::HeadStep::Kind::kDone) co_return true;
  request_ = {};
  co_await refuse(read.value().status, read.value().reason);
  co_return false;
}

net::Task<> HttpRelay::run() {
  const bool got = co_await read_request();
  if (got) co_await answer();
  if (!broken_ && !deps_.draining) {
    deps_.resting.insert(&client_.stream());
    co_await linger(client_.stream(), deps_.clock);
    deps_.resting.erase(&client_.stream());
  }
  client_.stream().close(broken_);
}

net::Task<> HttpRelay::answer() {
  client_.begin_body(request_.framing);
  const auto routes = deps_.routes.current();
  classified_ = classify(request_, *routes, deps_.loop_id, Arrival{});
  if (classified_.kind == Classified::Kind::kRefuse) {
    co_await refuse(classified_.status, classified_.reason);
    co_return;
  }
  if (classified_.invalidates && !deps_.drops.has_room()) {
    co_await refuse(503, "the cache has been away for too many writes; try again later");
    co_return;
  }
  const http::RequestHead asked = upstream_request(request_, nullptr, deps_.loop_id);
  auto done = co_await exchange(deps_.pool, classified_.origin, asked, this);
  // Whatever the answer: one that is lost does not say that nothing was written.
  if (classified_.invalidates) {
    std::vector<Drop> drops = drops_of(done);
    co_await deps_.drops.drop(std::move(drops));
  }
  if (!done) {
    const int status = client_broke_ ? 400 : done.error().remedy == Remedy::kTimedOut ? 504 : 502;
    co_await refuse(status, done.error().message);
    co_return;
  }
  const Result<void> relayed = co_await relay(std::move(done.value()));
  broken_ = !relayed;
  if (broken_) deps_.log.debug("relayed answer aborted", {{"reason", relayed.error().message}});
}

// What the cache drops for the same request (RFC 9111 §4.4); where its body names the objects, all of the bucket.
std::vector<Drop> HttpRelay::drops_of(const Result<Exchange>& done) const {
  std::vector<Drop> out;
  const auto add = [&](const std::string& path) {
    for (auto& each : paths_of_write(path, *classified_.upstream)) out.push_back({std::move(each)});
  };
  add(classified_.key.path);
  const bool succeeded = done && done.value().head.status < 400;
  for (const auto name : {"Location", "Content-Location"}) {
    const auto reference = succeeded ? done.value().head.fields.find(name) : std::nullopt;
    const auto path = reference ? path_of_reference(classified_.key, *reference) : std::nullopt;
    if (path) add(*path);
  }
  const int status = done ? done.value().head.status : 0;
  const bool refused = status >= 300 && status != 303;  // 303: a form went well
  const bool by_body = classified_.bulk_delete || classified_.form_upload;
  // What never came whole changes nothing: a stranger's five bytes must not empty a bucket.
  if (!by_body || refused || !client_.body_done()) return out;
  for (std::string path : paths_of_write(prefix_of_bucket(classified_.key.path) + "x", *classified_.upstream)) {
    path.pop_back();
    out.push_back({std::move(path), true});
  }
  return out;
}

net::Task<> HttpRelay::refuse(int status, std::string reason) {
  const HeadOptions options{"detail=cache-away", true, deps_.clock.wall()};
  const std::string text = own_answer(status, reason, request_.method != "HEAD", options);
  const Result<void> sent = co_await send(text);
  broken_ = !sent;
}

net::Task<Result<void>> HttpRelay::relay(Exchange exchange) {
  const RelayFraming framing = relay_framing(exchange.head, request_.minor_version);
  const HeadOptions options{kCacheStatus, true, deps_.clock.wall()};
  const std::string head = relayed_head_text(exchange.head, framing, options);
  NEZHA_CO_DO(co_await send(head));
  Connection& server = *exchange.connection;
  std::vector<char> buffer(limits::kRelayBytes);
  while (!server.body_done()) {
    size_t got = 0;
    {
      const net::ScopedDeadline deadline(server.stream(), stall_deadline());
      NEZHA_CO_TRY(got, co_await server.read_body(buffer));
    }
    if (got == 0) break;
    char line[20] = "";
    const int size = framing.chunked ? std::snprintf(line, sizeof line, "%zx\r\n", got) : 0;
    const std::array<std::string_view, 3> pieces{std::string_view(line, static_cast<size_t>(size)),
                                                 std::string_view(buffer.data(), got), framing.chunked ? "\r\n" : ""};
    NEZHA_CO_DO(co_await send_pieces(pieces));
  }
  if (framing.chunked) NEZHA_CO_DO(co_await send("0\r\n\r\n"));
  co_return ok();
}

}  // namespace

net::Task<> run_http_relay(HttpRelayDeps& deps, std::unique_ptr<net::Stream> client) {
  HttpRelay relay(deps, std::move(client));
  co_await relay.run();
}

}  // namespace nezha::cache
