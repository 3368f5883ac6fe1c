#include "cache/request/bulk_delete.h"

#include <algorithm>

#include "cache/classify/object_paths.h"
#include "nezha/base/text.h"
#include "nezha/s3/delete_request.h"

namespace nezha::cache {
namespace {

constexpr size_t kBodyBytesMax = 4 * 1024 * 1024;  // 1000 keys of 1024 bytes, in XML
constexpr size_t kKeyBytesMax = 1024;              // as S3 has it
constexpr size_t kKeysMax = 1000;                  // S3 refuses more; each is looked for under all its names

bool is_aws_chunked(const http::Fields& fields) {
  for (const auto coding : http::list_members(fields, "Content-Encoding")) {
    if (iequals(coding, "aws-chunked")) return true;
  }
  return fields.find("X-Amz-Content-SHA256").value_or("").starts_with("STREAMING-");
}

}  // namespace

BulkDelete::BulkDelete(SessionDeps& deps, RequestSide& client, const http::RequestHead& request,
                       const Classified& classified)
    : deps_(deps), client_(client), request_(request), classified_(classified) {
  // The prefixes under each host: paths of an object named "x", without that name.
  const std::string prefix = prefix_of_bucket(classified.key.path);
  for (std::string path : paths_of_write(prefix + "x", *classified.upstream)) {
    path.pop_back();
    buckets_.push_back(std::move(path));
  }
}

net::Task<Result<size_t>> BulkDelete::read_body(std::span<char> into) {
  Result<size_t> got = co_await client_.read_body(into);
  if (!got || whole_) co_return got;
  const size_t size = got.value();
  seen_bytes_ += size;
  if (seen_bytes_ <= kBodyBytesMax) body_.append(into.data(), size);
  const http::Framing framing = client_.framing();
  whole_ = size == 0 || (framing.kind == http::Framing::Kind::kLength && seen_bytes_ == framing.length_bytes);
  if (whole_) {
    parse();
    if (understood_) co_await invalidate(false);
  }
  co_return got;
}

void BulkDelete::parse() {
  if (seen_bytes_ > kBodyBytesMax) return;
  if (is_aws_chunked(request_.fields)) {
    auto decoded = s3::decode_aws_chunked(body_);
    if (!decoded) return;
    body_ = std::move(decoded.value());
  }
  const auto keys = s3::parse_delete_request(body_);
  if (!keys || keys.value().size() > kKeysMax) return;
  for (const auto& key : keys.value()) {
    if (key.get().size() > kKeyBytesMax) return;
  }
  understood_ = true;
  for (const auto& key : keys.value()) {
    for (const auto& spelling : s3::spellings(key)) {
      for (const auto& bucket : buckets_) paths_.push_back(bucket + spelling);
    }
  }
  body_ = {};
}

net::Task<> BulkDelete::invalidate(bool refused) {
  if (understood_) {
    std::vector<std::string> paths = paths_;
    co_await deps_.store.invalidate(std::move(paths));
    co_return;
  }
  // What never came whole deletes nothing: a stranger's five bytes must not empty a bucket.
  if (refused || !whole_) co_return;
  Store::PathPredicate in_bucket = [buckets = buckets_](const std::string& path) {
    return std::any_of(buckets.begin(), buckets.end(), [&](const auto& bucket) { return is_under(path, bucket); });
  };
  co_await deps_.store.invalidate_if(std::move(in_bucket));
}

}  // namespace nezha::cache
