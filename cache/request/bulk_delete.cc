#include "cache/request/bulk_delete.h"

#include <algorithm>

#include "cache/classify/object_paths.h"
#include "nezha/base/text.h"
#include "nezha/s3/delete_request.h"

namespace nezha::cache {
namespace {

constexpr size_t kBodyBytesMax = 4 * 1024 * 1024;  // 1000 keys of 1024 bytes, in XML
constexpr size_t kMemoryPerBodyByte = 4;           // the body, without its chunks, as XML, and the hashes
constexpr size_t kTagsMax = 64'000;                // of which each takes memory; 1000 keys need a tenth of them
constexpr size_t kKeyBytesMax = 1024;              // as S3 has it
constexpr size_t kKeysMax = 1000;                  // S3 refuses more; each is looked for under all its names
constexpr size_t kPathsMax = 64'000;               // of all keys

bool is_aws_chunked(const http::Fields& fields) {
  for (const auto coding : http::list_members(fields, "Content-Encoding")) {
    if (iequals(coding, "aws-chunked")) return true;
  }
  return fields.find("X-Amz-Content-SHA256").value_or("").starts_with("STREAMING-");
}

}  // namespace

BulkDelete::BulkDelete(SessionDeps& deps, RequestSide& client, const http::RequestHead& request,
                       const Classified& classified)
    : deps_(deps), client_(client), request_(request), given_up_(classified.form_upload) {
  // The prefixes under each host: paths of an object named "x", without that name.
  const std::string prefix = prefix_of_bucket(classified.key.path);
  for (std::string path : paths_of_write(prefix + "x", *classified.upstream)) {
    path.pop_back();
    buckets_.push_back(std::move(path));
  }
}

BulkDelete::~BulkDelete() { deps_.store.give_fill_memory(taken_bytes_); }

net::Task<Result<size_t>> BulkDelete::read_body(std::span<char> into) {
  Result<size_t> got = co_await client_.read_body(into);
  if (!got || whole_) co_return got;
  const size_t size = got.value();
  seen_bytes_ += size;
  keep({into.data(), size});
  const http::Framing framing = client_.framing();
  whole_ = size == 0 || (framing.kind == http::Framing::Kind::kLength && seen_bytes_ == framing.length_bytes);
  if (whole_ && !given_up_) {
    std::function<void()> work = [this] { parse(); };
    co_await deps_.fill.workers.run(std::move(work));
    if (understood_) co_await deps_.store.invalidate_hashed(hashes_);
  }
  co_return got;
}

void BulkDelete::keep(std::string_view bytes) {
  if (given_up_) return;
  const size_t needed_bytes = bytes.size() * kMemoryPerBodyByte;
  given_up_ = seen_bytes_ > kBodyBytesMax || !deps_.store.take_fill_memory(needed_bytes);
  if (given_up_) {
    body_ = {};
    return;
  }
  taken_bytes_ += needed_bytes;
  body_.append(bytes);
}

// On a worker: it takes a while for many keys.
void BulkDelete::parse() {
  const std::string body = std::move(body_);
  std::string_view xml = body;
  std::string decoded;
  if (is_aws_chunked(request_.fields)) {
    auto payload = s3::decode_aws_chunked(body);
    if (!payload) return;
    xml = decoded = std::move(payload.value());
  }
  if (static_cast<size_t>(std::count(xml.begin(), xml.end(), '<')) > kTagsMax) return;
  const auto keys = s3::parse_delete_request(xml);
  if (!keys || keys.value().size() > kKeysMax) return;
  std::vector<uint64_t> hashes;
  for (const auto& key : keys.value()) {
    if (key.get().size() > kKeyBytesMax) return;
    const auto spellings = s3::spellings(key);
    if (hashes.size() + spellings.size() * buckets_.size() > kPathsMax) return;
    for (const auto& spelling : spellings) {
      for (const auto& bucket : buckets_) hashes.push_back(hash_of_path(bucket + spelling));
    }
  }
  hashes_ = std::move(hashes);
  understood_ = true;
}

net::Task<> BulkDelete::invalidate(int status) {
  if (understood_) {
    co_await deps_.store.invalidate_hashed(hashes_);
    co_return;
  }
  // What never came whole deletes nothing: a stranger's five bytes must not empty a bucket. 303: a form went well.
  const bool refused = status >= 300 && status != 303;
  if (refused || !whole_) co_return;
  Store::PathPredicate in_bucket = [buckets = buckets_](const std::string& path) {
    return std::any_of(buckets.begin(), buckets.end(), [&](const auto& bucket) { return is_under(path, bucket); });
  };
  co_await deps_.store.invalidate_if(std::move(in_bucket));
}

}  // namespace nezha::cache
