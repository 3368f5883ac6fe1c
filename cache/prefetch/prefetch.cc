#include "cache/prefetch/prefetch.h"

#include <httplib.h>

#include <array>
#include <atomic>
#include <list>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "cache/prefetch/prefetch_request.h"
#include "nezha/base/text.h"
#include "nezha/s3/list_objects.h"
#include "nezha/s3/sha256.h"
#include "nezha/s3/sigv4.h"

namespace nezha::cache {

// One POST /prefetch, and what has come of it. Jobs of the latest are kept to be looked at.
struct PrefetchJob {
  int number = 0;
  PrefetchRequest request;
  BucketPlace place;
  std::atomic<uint64_t> found{0}, fetched{0}, failed{0}, bytes{0};
  std::atomic<bool> listing{true};
  mutable std::mutex mutex;
  std::string error = {};  // the first one, for a person
};

namespace {

constexpr size_t kFetches = 4;      // at a time
constexpr size_t kJobsKept = 100;   // of those that have ended
constexpr size_t kJobsAtOnce = 16;  // that are still listed
constexpr size_t kPageBytesMax = 8 * 1024 * 1024;
constexpr time_t kAnswerTimeoutS = 120;
constexpr std::chrono::milliseconds kInterruptEvery{20};

void note_error(PrefetchJob* job, const std::string& error) {
  if (!job) return;
  std::lock_guard lock(job->mutex);
  if (job->error.empty()) job->error = printable(error, 200);
}

// One connection to the cache after the other, as a reader's. Used by one thread; interrupt() by any.
class Reader {
 public:
  Reader(const PrefetchDeps& deps, std::stop_token stop) : deps_(deps), stop_(std::move(stop)) {}

  // Ends the request under way, if it has got so far: call it until the thread has ended.
  void interrupt() {
    std::lock_guard lock(mutex_);
    if (client_) client_->stop();
  }

  // The body of a 200, in pieces. The error names status or reason.
  Result<void> get(const FetchTarget& target, const std::function<void(std::string_view)>& take) {
    NEZHA_TRY(const httplib::Headers fields, signed_fields(target));
    NEZHA_TRY(httplib::Client* const client, client_for(target));
    if (stop_.stop_requested()) return fail(Remedy::kRetryLater, "stopped");
    int status = 0;
    const auto result = client->Get(
        target.target, fields,
        [&](const httplib::Response& response) {
          status = response.status;
          return true;
        },
        [&](const char* data, size_t size) {
          if (status == 200) take({data, size});
          return !stop_.stop_requested();
        });
    if (!result) return fail(Remedy::kRetryLater, "the answer broke off: " + httplib::to_string(result.error()));
    if (status == 200) return ok();
    return fail(status >= 500 || status == 429 ? Remedy::kRetryLater : Remedy::kGiveUp,
                "the answer was " + std::to_string(status));
  }

 private:
  Result<httplib::Headers> signed_fields(const FetchTarget& target) const {
    const std::shared_ptr<const Routes> routes = deps_.routes.current();
    const config::Upstream* const upstream = routes->find(target.host);
    const bool has_keys = upstream && !upstream->credentials_secret.empty();
    const auto keys = has_keys ? deps_.keys.find(upstream->credentials_secret) : nullptr;
    if (!keys) return fail(Remedy::kGiveUp, "there are no keys for " + target.host);
    http::RequestHead head;
    head.method = "GET";
    head.minor_version = 1;
    head.target = target.target;
    head.fields.add("Host", target.authority);
    head.fields.add("Accept-Encoding", "identity");
    const s3::PayloadHash no_body{s3::PayloadHash::Kind::kSha256, std::string(s3::kEmptySha256)};
    const http::Fields signature = s3::sign(head, keys->own, keys->region, no_body, deps_.clock.wall());
    signature.for_each([&](std::string_view name, std::string_view value) { head.fields.set(name, value); });
    httplib::Headers out;
    head.fields.for_each([&](std::string_view name, std::string_view value) { out.emplace(name, value); });
    return out;
  }

  Result<httplib::Client*> client_for(const FetchTarget& target) {
    const net::SocketAddress& address = target.tls ? deps_.https : deps_.http;
    if (address.port == 0)
      return fail(Remedy::kGiveUp, std::string("the cache listens on no port for ") + (target.tls ? "https" : "http"));
    const std::string base = (target.tls ? "https://" : "http://") + target.host + ":" + std::to_string(address.port);
    std::lock_guard lock(mutex_);
    if (client_ && base_ == base) return client_.get();
    client_ = std::make_unique<httplib::Client>(base);
    client_->set_hostname_addr_map({{target.host, address.ip}});
    client_->enable_server_certificate_verification(false);  // it is ourselves, over loopback
    client_->set_keep_alive(true);
    client_->set_decompress(false);
    client_->set_url_encode(false);
    client_->set_read_timeout(kAnswerTimeoutS);
    base_ = base;
    return client_.get();
  }

  const PrefetchDeps& deps_;
  const std::stop_token stop_;
  std::mutex mutex_;
  std::unique_ptr<httplib::Client> client_;
  std::string base_;
};

class ThreadedPrefetcher final : public Prefetcher {
 public:
  explicit ThreadedPrefetcher(PrefetchDeps deps)
      : deps_(std::move(deps)),
        objects_(deps_.metrics.counter("nezha_cache_prefetched_objects_total", "Objects fetched before their readers")),
        failures_(deps_.metrics.counter("nezha_cache_prefetch_failures_total", "Objects that could not be")) {
    for (size_t i = 0; i < kFetches; ++i) run([this](Reader& reader) { fetch(reader); });
    run([this](Reader& reader) { list(reader); });
  }
  ~ThreadedPrefetcher() override { stop(); }

  void stop() override {
    stop_.request_stop();
    while (running_ > 0) {
      for (Reader& reader : readers_) reader.interrupt();
      std::this_thread::sleep_for(kInterruptEvery);
    }
    for (auto& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  Result<std::string> start(std::string_view json) override {
    NEZHA_TRY(PrefetchRequest request, parse_prefetch_request(json));
    NEZHA_TRY(BucketPlace place, place_of_bucket(request, deps_.routes.current()->settings()));
    auto job = std::make_shared<PrefetchJob>();
    job->request = std::move(request);
    job->place = std::move(place);
    std::lock_guard lock(mutex_);
    if (stop_.stop_requested()) return fail(Remedy::kRetryLater, "shutting down");
    if (to_list_.size() >= kJobsAtOnce)
      return fail(Remedy::kRetryLater, "too many jobs are waiting; ask again when one has ended");
    job->number = ++jobs_begun_;
    jobs_.push_back(job);
    if (jobs_.size() > kJobsKept + kJobsAtOnce) jobs_.pop_front();
    to_list_.push_back(job);
    changed_.notify_all();
    return nlohmann::json{{"job", job->number}}.dump() + "\n";
  }

  std::string report() const override {
    nlohmann::json out = {{"jobs", nlohmann::json::array()}};
    std::lock_guard lock(mutex_);
    for (const auto& job : jobs_) {
      const uint64_t found = job->found, fetched = job->fetched, failed = job->failed;
      const bool ended = !job->listing && fetched + failed >= found;
      nlohmann::json one = {{"job", job->number},
                            {"bucket", job->request.bucket.get()},
                            {job->request.prefix ? "prefix" : "key", job->request.text},
                            {"state", ended          ? "ended"
                                      : job->listing ? "listing"
                                                     : "fetching"},
                            {"found", found},
                            {"fetched", fetched},
                            {"failed", failed},
                            {"bytes", job->bytes.load()}};
      std::lock_guard job_lock(job->mutex);
      if (!job->error.empty()) one["error"] = job->error;
      out["jobs"].push_back(std::move(one));
    }
    return out.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

 private:
  void run(std::function<void(Reader&)> work) {
    Reader& reader = readers_.emplace_back(deps_, stop_.get_token());
    ++running_;
    threads_.emplace_back([this, &reader, work = std::move(work)] {
      work(reader);
      --running_;
    });
  }

  void fetch(Reader& reader) {
    while (const auto target = deps_.queue.pop(stop_.get_token())) {
      uint64_t size_bytes = 0;
      const Result<void> done = reader.get(*target, [&](std::string_view piece) { size_bytes += piece.size(); });
      PrefetchJob* const job = target->job.get();
      (done ? objects_ : failures_).add();
      if (job) {
        job->bytes += size_bytes;
        ++(done ? job->fetched : job->failed);
      }
      if (done) continue;
      note_error(job, done.error().message);
      if (!job)
        deps_.log.warning("what was written could not be fetched",
                          {{"host", target->host}, {"reason", done.error().message}});
    }
  }

  void list(Reader& reader) {
    const std::stop_token stop = stop_.get_token();
    while (const auto job = next_job(stop)) {
      if (!job->request.prefix)
        push(job, job->request.text, stop);
      else
        list_prefix(reader, job, stop);
      job->listing = false;
      std::lock_guard lock(job->mutex);
      deps_.log.info(
          "prefetch listed",
          {{"bucket", job->request.bucket.get()}, {"objects", std::to_string(job->found)}, {"error", job->error}});
    }
  }

  void list_prefix(Reader& reader, const std::shared_ptr<PrefetchJob>& job, const std::stop_token& stop) {
    const std::string& path = job->place.path;
    const std::string bucket_path = path == "/" ? path : path.substr(0, path.size() - 1);
    std::set<std::string> tokens;  // a source may lead in circles
    for (std::string token; !stop.stop_requested();) {
      const std::string target = bucket_path + "?" + s3::object_page_query(job->request.text, token);
      std::string xml;
      const Result<void> got =
          reader.get({job->place.tls, job->place.host, job->place.host, target}, [&](std::string_view piece) {
            if (xml.size() <= kPageBytesMax) xml += piece;
          });
      if (!got) return note_error(job.get(), "the listing failed: " + got.error().message);
      auto page = s3::parse_object_page(xml);
      if (!page) return note_error(job.get(), "the listing is " + page.error().message);
      for (const auto& object : page.value().objects) {
        if (object.size_bytes > 0 && !push(job, object.key.get(), stop)) return;
      }
      token = page.value().continuation_token;
      if (token.empty()) return;
      if (!tokens.insert(token).second) return note_error(job.get(), "the listing leads in circles");
    }
  }

  // In the spelling of AWS's own SDKs.
  bool push(const std::shared_ptr<PrefetchJob>& job, const std::string& key, const std::stop_token& stop) {
    const std::string path = job->place.path + s3::spellings(s3::ObjectKey(key)).front();
    ++job->found;
    return deps_.queue.push({job->place.tls, job->place.host, job->place.host, path, job}, stop);
  }

  std::shared_ptr<PrefetchJob> next_job(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [this] { return !to_list_.empty(); })) return nullptr;
    auto job = to_list_.front();
    to_list_.pop_front();
    return job;
  }

  const PrefetchDeps deps_;
  obs::Counter& objects_;
  obs::Counter& failures_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  int jobs_begun_ = 0;
  std::list<std::shared_ptr<PrefetchJob>> jobs_;
  std::list<std::shared_ptr<PrefetchJob>> to_list_;
  std::stop_source stop_;
  std::atomic<size_t> running_{0};
  std::list<Reader> readers_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Prefetcher> start_prefetcher(PrefetchDeps deps) {
  return std::make_unique<ThreadedPrefetcher>(std::move(deps));
}

}  // namespace nezha::cache
