// The body of POST /prefetch: what is to be fetched. Pure. Threads: any.
//   {"bucket": "team-data", "key": "train/0001.tar"}    one object
//   {"bucket": "team-data", "prefix": "train/"}         all objects whose key begins so; "" is the whole bucket
// and, where that is not clear, "host": the name by which readers ask for the bucket.
#pragma once

#include <string>
#include <string_view>

#include "cache/classify/routes.h"
#include "nezha/base/result.h"
#include "nezha/s3/object.h"

namespace nezha::cache {

struct PrefetchRequest {
  s3::BucketName bucket;
  std::string text;  // the key; with `prefix`, what it begins with
  bool prefix = false;
  std::string host;  // or empty
};

// Fails with kFixInput: not JSON, or not one of these forms.
Result<PrefetchRequest> parse_prefetch_request(std::string_view json);

// Under which host and path readers find the bucket's objects.
struct BucketPlace {
  UpstreamName upstream;
  bool tls = false;
  std::string host;
  std::string path;  // "/" or "/BUCKET/": before the key
};
// Fails with kFixInput: no S3 upstream with keys has it, or several may.
Result<BucketPlace> place_of_bucket(const PrefetchRequest& request, const config::Settings& settings);

}  // namespace nezha::cache
