#include "cache/request/signed_ranges.h"

#include <algorithm>

#include "cache/request/asking.h"
#include "nezha/s3/sha256.h"
#include "nezha/s3/sigv4.h"

namespace nezha::cache {
namespace {

// The client's target and Host, without its signature and all that is about it.
http::RequestHead bare_request(const http::RequestHead& client) {
  const http::RequestHead whole = upstream_request(client, nullptr, "");
  http::RequestHead out;
  out.method = "GET";
  out.minor_version = 1;
  const size_t mark = std::min(whole.target.find('?'), whole.target.size());
  out.target = whole.target.substr(0, mark);
  bool removed = false;
  if (mark < whole.target.size()) {
    const std::string query = strip_signature(std::string_view(whole.target).substr(mark + 1), removed);
    if (!query.empty()) out.target += "?" + query;
  }
  for (const auto name : {"Host", "Accept-Encoding", "User-Agent"}) {
    if (const auto value = whole.fields.find(name)) out.fields.add(name, *value);
  }
  return out;
}

// That of the client's signature: it found the bucket there.
std::string region_of(const http::RequestHead& client, const KeySet& keys) {
  const s3::ClaimReading reading = s3::read_claim(client);
  return reading.kind == s3::ClaimReading::Kind::kClaim ? reading.claim.scope.region : keys.region;
}

class SignedRanges final : public RangeSource {
 public:
  SignedRanges(UpstreamPool& pool, Origin origin, const http::RequestHead& client, StoredHeadPtr head,
               std::shared_ptr<const KeySet> keys, std::string_view loop_id)
      : pool_(pool),
        origin_(std::move(origin)),
        client_(client),
        request_(bare_request(client)),
        head_(std::move(head)),
        region_(region_of(client, *keys)),
        keys_(std::move(keys)),
        loop_id_(loop_id) {}

  net::Task<Result<Exchange>> open(http::ByteRange part) override {
    const http::RequestHead asked =
        refused_ ? upstream_rest_request(client_, *head_, part, loop_id_) : signed_request(part);
    NEZHA_CO_TRY(Exchange got, co_await exchange(pool_, origin_, asked, nullptr));
    if (completes(got.head, *head_, part)) {
      gave_ = true;
      co_return std::move(got);
    }
    const int status = got.head.status;
    // Rights that went away meanwhile need not be those of the reader: he asks himself then.
    const bool ask_otherwise = gave_ && !refused_ && (status == 401 || status == 403);
    refused_ |= ask_otherwise;
    const bool busy = status == 429 || status >= 500 || ask_otherwise;
    co_return fail(busy ? Remedy::kRetryLater : Remedy::kGiveUp,
                   "asked for a part with keys of its own, the source answered " + std::to_string(status));
  }

 private:
  http::RequestHead signed_request(http::ByteRange part) const {
    http::RequestHead out = request_;
    out.fields.add("Range", "bytes=" + std::to_string(part.begin) + "-" + std::to_string(part.end - 1));
    out.fields.add("If-Match", head_->etag->text);
    const s3::PayloadHash no_body{s3::PayloadHash::Kind::kSha256, std::string(s3::kEmptySha256)};
    const http::Fields signature = s3::sign(out, keys_->own, region_, no_body, pool_.clock().wall());
    signature.for_each([&](std::string_view name, std::string_view value) { out.fields.set(name, value); });
    out.fields.add("Via", "1.1 nezha");
    add_loop_mark(out.fields, loop_id_);
    return out;
  }

  UpstreamPool& pool_;
  const Origin origin_;
  const http::RequestHead client_;
  const http::RequestHead request_;
  const StoredHeadPtr head_;
  const std::string region_;
  const std::shared_ptr<const KeySet> keys_;
  const std::string loop_id_;
  bool gave_ = false;     // parts
  bool refused_ = false;  // and then no more
};

}  // namespace

std::unique_ptr<RangeSource> make_signed_ranges(UpstreamPool& pool, const Origin& origin,
                                                const http::RequestHead& request, StoredHeadPtr head,
                                                std::shared_ptr<const KeySet> keys, std::string_view loop_id) {
  if (!head->strong()) return nullptr;
  return std::make_unique<SignedRanges>(pool, origin, request, std::move(head), std::move(keys), loop_id);
}

}  // namespace nezha::cache
