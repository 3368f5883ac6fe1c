// The body of POST /purge: what is to be dropped. Pure. Threads: any.
//   {"upstream": "team-s3"}                             everything of an upstream, by its name
//   {"host": "data.example", "path": "/a/b.tar"}        one path, with every query and variant
//   {"host": "data.example", "prefix": "/a/"}           all paths that begin so
//   {"bucket": "team-data", "key": "train/0001.tar"}    one S3 object, under whatever host and spelling
//   {"bucket": "team-data", "prefix": "train/"}         all S3 objects whose key begins so
// Paths and keys are written without percent-encoding.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nezha/base/result.h"

namespace nezha::cache {

struct PurgeRequest {
  enum class Scope { kUpstream, kHost, kBucket };
  Scope scope = Scope::kUpstream;
  std::string name;  // of the upstream, host or bucket
  std::string text;  // path or key; with `prefix`, what it begins with
  bool prefix = false;
};

// Fails with kFixInput: not JSON, or not one of these forms.
Result<PurgeRequest> parse_purge_request(std::string_view json);

}  // namespace nezha::cache
