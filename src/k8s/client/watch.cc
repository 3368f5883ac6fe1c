#include "nezha/k8s/watch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <thread>
#include <utility>

#include "src/k8s/client/event_stream.h"
#include "src/k8s/client/failure.h"
#include "src/k8s/client/scope_target.h"
#include "src/k8s/client/transport.h"

namespace nezha::k8s {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A list page may hold this much; one object is at most 3 MiB and a page has page_items of them.
constexpr size_t kPageBytesMax = 64 * 1024 * 1024;
constexpr std::chrono::milliseconds kConnectTimeout{5'000};
constexpr std::chrono::milliseconds kSilenceBeyondServerTimeout{15'000};
// A watch that ended sooner and brought nothing counts as failed, or a server that closes at once would be hammered.
constexpr std::chrono::seconds kHealthyWatch{1};

// Doubling delays with jitter, so that replicas do not return in step.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds max) : first_(first), max_(max), next_(first) {}
  void reset() { next_ = first_; }
  std::chrono::milliseconds next() {
    const auto delay = next_;
    next_ = std::min(next_ * 2, max_);
    const auto half = delay.count() / 2;
    return std::chrono::milliseconds(half + std::uniform_int_distribution<int64_t>(0, half + 1)(random_));
  }

 private:
  const std::chrono::milliseconds first_, max_;
  std::chrono::milliseconds next_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace

class Watch::Loop {
 public:
  Loop(ApiServer server, Scope scope, WatchOptions options, OnChange on_change, obs::Log& log, obs::Counter* restarts)
      : scope_(std::move(scope)),
        options_(options),
        on_change_(std::move(on_change)),
        log_(log),
        restarts_(restarts),
        transport_(std::move(server),
                   {kConnectTimeout, options.server_timeout + kSilenceBeyondServerTimeout, kPageBytesMax}),
        backoff_(options.backoff_first, options.backoff_max),
        thread_([this](std::stop_token stop) { run(stop); }) {}

  ~Loop() { stop(); }

  void stop() {
    stopping_ = true;
    thread_.request_stop();
    transport_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  // What to do after a list or a watch has ended.
  enum class Next { kWatch, kWatchLater, kList, kListLater };

  void run(const std::stop_token& stop) {
    Next next = Next::kList;
    while (!stop.stop_requested()) {
      next = next == Next::kList || next == Next::kListLater ? list() : watch();
      if (stop.stop_requested()) return;
      if (restarts_ != nullptr && delivered_ && next != Next::kWatch) restarts_->add();
      if (next == Next::kWatchLater || next == Next::kListLater) wait(stop, backoff_.next());
    }
  }

  void wait(const std::stop_token& stop, std::chrono::milliseconds delay) {
    std::unique_lock lock(wait_mutex_);
    wait_.wait_for(lock, stop, delay, [] { return false; });
  }

  Next failed(const std::string& message, Next next) {
    if (!stopping_) log_.warning("watch failed, will try again", {{"what", scope_.resource.plural}, {"why", message}});
    return next;
  }

  Next list() {
    auto listed = list_all();
    if (!listed) return failed(listed.error().message, Next::kListLater);
    version_ = std::move(listed.value().second);
    if (!delivered_ || !same_versions(listed.value().first, state_)) {
      state_ = std::move(listed.value().first);
      deliver();
    }
    return Next::kWatch;
  }

  static bool same_versions(const Snapshot& a, const Snapshot& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
      return x.first == y.first && x.second->uid == y.second->uid &&
             x.second->resource_version == y.second->resource_version;
    });
  }

  void deliver() {
    delivered_ = true;
    on_change_(state_);
  }

  // The whole collection and the version it stands for.
  Result<std::pair<Snapshot, std::string>> list_all() {
    Snapshot snapshot;
    std::string page_token;
    do {
      NEZHA_TRY(ListPage page, list_page(page_token));
      for (auto& object : page.items) snapshot[object->key] = reduced(object);
      if (snapshot.size() > options_.objects_max) {
        return fail(Remedy::kGiveUp, "more than " + std::to_string(options_.objects_max) + " objects match");
      }
      page_token = std::move(page.next);
      if (page_token.empty()) return std::pair(std::move(snapshot), std::move(page.resource_version));
    } while (true);
  }

  Result<ListPage> list_page(const std::string& page_token) {
    std::string target = scope_target(scope_) + "limit=" + std::to_string(options_.page_items);
    if (!page_token.empty()) target += "&continue=" + percent_encode(page_token);
    const WireRequest request{"GET", target, {}, {}};
    auto answer = transport_.send(request);
    if (!answer && answer.error().remedy == Remedy::kRetryHere) answer = transport_.send(request);
    if (!answer) return std::move(answer).as_failure();
    if (answer.value().status != 200) {
      return BOOST_OUTCOME_V2_NAMESPACE::failure(
          error_of_answer("GET " + target, answer.value().status, answer.value().body));
    }
    return parse_list_page(answer.value().body);
  }

  Next watch() {
    const std::string target = scope_target(scope_) + "watch=true&allowWatchBookmarks=true&timeoutSeconds=" +
                               std::to_string(options_.server_timeout.count()) +
                               "&resourceVersion=" + percent_encode(version_);
    EventStream stream(options_.event_bytes_max);
    std::optional<Next> verdict;
    bool progressed = false;
    const auto began = SteadyClock::now();
    const auto answer = transport_.send({"GET", target, {}, {}}, [&](std::string_view bytes) {
      verdict = take(stream, bytes, progressed);
      return !verdict;
    });
    if (progressed || SteadyClock::now() - began > kHealthyWatch) backoff_.reset();
    if (verdict) return *verdict;
    if (answer && answer.value().status == 410) return Next::kList;
    if (answer && answer.value().status != 200) {
      return failed(error_of_answer("watch", answer.value().status, answer.value().body).message, Next::kListLater);
    }
    if (answer || answer.error().remedy == Remedy::kRetryHere) return progressed ? Next::kWatch : Next::kWatchLater;
    return failed(answer.error().message, Next::kWatchLater);
  }

  // Applies what arrived. A value ends the watch.
  std::optional<Next> take(EventStream& stream, std::string_view bytes, bool& progressed) {
    auto events = stream.feed(bytes);
    if (!events) return failed(events.error().message, Next::kListLater);
    bool changed = false;
    std::optional<Next> verdict;
    for (Event& event : events.value()) {
      if (event.type == Event::Type::kError) {
        const bool expired = event.error_code == 410;
        verdict = expired ? Next::kList : failed("the server ended it: " + event.error_message, Next::kListLater);
        break;
      }
      progressed = true;
      version_ = event.resource_version;
      changed |= apply(event);
      if (state_.size() > options_.objects_max) verdict = failed("too many objects match", Next::kListLater);
    }
    if (changed) deliver();
    return verdict;
  }

  bool apply(Event& event) {
    if (event.type == Event::Type::kBookmark) return false;
    if (event.type == Event::Type::kDeleted) return state_.erase(event.object->key) != 0;
    state_[event.object->key] = reduced(event.object);
    return true;
  }

  std::shared_ptr<const Object> reduced(const std::shared_ptr<const Object>& object) const {
    if (!options_.reduce) return object;
    return std::make_shared<const Object>(
        Object{object->key, object->uid, object->resource_version, options_.reduce(object->json)});
  }

  const Scope scope_;
  const WatchOptions options_;
  const OnChange on_change_;
  obs::Log& log_;
  obs::Counter* const restarts_;
  Transport transport_;
  Backoff backoff_;
  Snapshot state_;
  std::string version_;
  bool delivered_ = false;
  std::atomic<bool> stopping_{false};
  std::mutex wait_mutex_;
  std::condition_variable_any wait_;
  std::jthread thread_;  // last: everything above exists before it runs
};

Watch::Watch(ApiServer server, Scope scope, WatchOptions options, OnChange on_change, obs::Log& log,
             obs::Counter* restarts)
    : loop_(std::make_unique<Loop>(std::move(server), std::move(scope), options, std::move(on_change), log, restarts)) {
}
Watch::~Watch() = default;
void Watch::stop() { loop_->stop(); }

}  // namespace nezha::k8s
