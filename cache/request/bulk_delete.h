// BulkDelete: S3's DeleteObjects passing by (POST /BUCKET?delete). It looks at the body on its way to the source, so
// that the objects it names are dropped before the source has all of it, and again behind the answer. Threads: the
// loop's own.
#pragma once

#include <string>

#include "cache/request/session_deps.h"

namespace nezha::cache {

class BulkDelete final : public RequestSide {
 public:
  // `client`: whose request it is; `classified`: of that request. Both outlive it.
  BulkDelete(SessionDeps& deps, RequestSide& client, const http::RequestHead& request, const Classified& classified);

  // Behind the answer: drops what the body names. Where the body is not understood, larger than 4 MiB or names more
  // than 1000, everything of the bucket, unless the source has refused the request: that reads all stored heads, which
  // no stranger may cause.
  net::Task<> invalidate(bool refused);

  bool has_body() const override { return client_.has_body(); }
  bool expects_continue() const override { return client_.expects_continue(); }
  http::Framing framing() const override { return client_.framing(); }
  net::Task<Result<size_t>> read_body(std::span<char> into) override;
  net::Task<Result<void>> interim(const http::ResponseHead& head) override { return client_.interim(head); }

 private:
  void parse();

  SessionDeps& deps_;
  RequestSide& client_;
  const http::RequestHead& request_;
  const Classified& classified_;
  std::string body_;
  uint64_t seen_bytes_ = 0;
  bool whole_ = false;                // the body came to its end
  bool understood_ = false;           // and says what it is about:
  std::vector<std::string> paths_;    // of the store
  std::vector<std::string> buckets_;  // prefixes of paths: what it may be about
};

}  // namespace nezha::cache
