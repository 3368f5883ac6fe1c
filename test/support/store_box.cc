#include "test/support/store_box.h"

#include <algorithm>

#include "nezha/base/check.h"

namespace nezha::test {

using cache::CacheKey;
using cache::Queue;
using cache::StoredHeadPtr;

void run_task(net::Task<> task) {
  boost::asio::io_context context;
  boost::asio::co_spawn(context, std::move(task), [](std::exception_ptr) {});
  context.run();
}

std::shared_ptr<cache::StoredHead> head_of(const std::string& etag, std::optional<uint64_t> total_bytes, int second) {
  auto head = std::make_shared<cache::StoredHead>();
  head->fields.add("Content-Type", "application/octet-stream");
  if (!etag.empty()) head->fields.add("ETag", etag);
  head->total_bytes = total_bytes;
  head->response_time = std::chrono::system_clock::from_time_t(1'800'000'000) + std::chrono::seconds(second);
  cache::complete(*head);
  return head;
}

StoreBox::StoreBox(std::vector<cache::Store::TierPlan> tiers, cache::StoreLimits limits)
    : log_(obs::make_null_log()), metrics_(obs::make_metrics()) {
  auto opened = cache::Store::open(std::move(tiers), limits, {workers_, workers_, clock_, *log_, *metrics_});
  NEZHA_CHECK(opened.has_value(), opened.error().message.c_str());
  store_ = std::move(opened.value());
}

namespace {

std::vector<cache::Store::TierPlan> one(std::unique_ptr<cache::Medium> medium, uint64_t size, uint64_t segment) {
  std::vector<cache::Store::TierPlan> out;
  out.push_back({std::move(medium), size, segment});
  return out;
}

}  // namespace

StoreBox::StoreBox(std::unique_ptr<cache::Medium> medium, uint64_t size_bytes, uint64_t segment_bytes)
    : StoreBox(one(std::move(medium), size_bytes, segment_bytes)) {}

bool StoreBox::put(const CacheKey& key, std::shared_ptr<cache::StoredHead> head, std::string_view body, uint64_t begin,
                   bool may_join) {
  const auto ticket = store_->begin_fill(key);
  uint64_t generation = ticket->generation;
  const auto open = [&] {
    const auto opened = store_->open_generation(*ticket, key, head, Queue::kProbation, may_join);
    if (opened) generation = opened.value()->generation;
    return opened.has_value();
  };
  if (may_join && !open()) return false;
  std::vector<cache::Extent> extents;
  std::vector<cache::PinnedBytes> pins;
  for (uint64_t at = 0; at < body.size();) {
    const auto piece = body.substr(at, store_->fill_tier().piece_bytes());
    const auto appended = store_->append_extent(*ticket, generation, Queue::kProbation, begin + at, piece);
    if (!appended) return false;
    extents.push_back({begin + at, appended.value().place});
    pins.push_back(appended.value().bytes);
    at += piece.size();
  }
  if (!may_join && !open()) return false;
  return store_->add_extents(*ticket, generation, extents);
}

StoredHeadPtr StoreBox::find(const CacheKey& key, const http::Fields& request) {
  bool must_load = false;
  auto head = store_->find_now(key, request, must_load);
  return must_load ? run_task(store_->find(key, request)) : head;
}

std::optional<std::string> StoreBox::read(const CacheKey& key, const StoredHeadPtr& head, http::ByteRange range,
                                          bool* damaged) {
  const auto body = store_->pin(key, head, range);
  if (!body) return std::nullopt;
  std::string out;
  for (const auto& piece : body->pieces) {
    if (!store_->is_ready(piece)) {
      const Result<void> ready = run_task(store_->make_ready(piece));
      if (!ready) {
        if (damaged) *damaged = true;
        drop(key, head);
        return std::nullopt;
      }
    }
    out += piece.bytes;
  }
  return out;
}

std::optional<std::string> StoreBox::read(const CacheKey& key) {
  const auto head = find(key);
  if (!head || !head->total_bytes) return std::nullopt;
  return read(key, head, {0, *head->total_bytes});
}

}  // namespace nezha::test
