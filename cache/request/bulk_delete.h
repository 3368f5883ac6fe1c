// BulkDelete: a POST to an S3 bucket whose body names what it changes: DeleteObjects (POST /BUCKET?delete), or a
// browser's form upload. It looks at the body of the former on its way to the source, so that the objects it names are
// dropped before the source has all of it, and again behind the answer. Threads: the loop's own; what takes a while
// runs on workers.
#pragma once

#include <string>
#include <vector>

#include "cache/request/session_deps.h"

namespace nezha::cache {

class BulkDelete final : public RequestSide {
 public:
  // `client`: whose request it is; `classified`: of that request. The references outlive it.
  BulkDelete(SessionDeps& deps, RequestSide& client, const http::RequestHead& request, const Classified& classified);
  BulkDelete(const BulkDelete&) = delete;
  BulkDelete& operator=(const BulkDelete&) = delete;
  ~BulkDelete() override;

  // Behind the answer, of this status (0: none came): drops what the body names. Where the body is a form, not
  // understood, larger than 4 MiB or than there is memory for, or names more than 1000, everything of the bucket,
  // unless the source has refused the request: that reads all stored heads, which no stranger may cause.
  net::Task<> invalidate(int status);

  bool has_body() const override { return client_.has_body(); }
  bool expects_continue() const override { return client_.expects_continue(); }
  http::Framing framing() const override { return client_.framing(); }
  net::Task<Result<size_t>> read_body(std::span<char> into) override;
  net::Task<Result<void>> interim(const http::ResponseHead& head) override { return client_.interim(head); }

 private:
  void keep(std::string_view bytes);
  void parse();

  SessionDeps& deps_;
  RequestSide& client_;
  const http::RequestHead& request_;
  std::string body_;
  uint64_t seen_bytes_ = 0;
  uint64_t taken_bytes_ = 0;          // of the memory for fills
  bool given_up_ = false;             // the body is not looked at
  bool whole_ = false;                // it came to its end
  bool understood_ = false;           // and says what it is about:
  std::vector<uint64_t> hashes_;      // of paths in the store
  std::vector<std::string> buckets_;  // prefixes of paths: what it may be about
};

}  // namespace nezha::cache
