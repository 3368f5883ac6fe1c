// Objects of S3 and the spellings of their names in request paths. Nothing here knows hosts or requests.
// A key is bytes; in a path it is percent-encoded, and clients differ in what they encode. To the cache each spelling
// is a path of its own, so whoever names an object from outside names all of its usual ones. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/named.h"

namespace nezha::s3 {

using BucketName = Named<struct BucketNameTag, std::string>;
using ObjectKey = Named<struct ObjectKeyTag, std::string>;  // decoded bytes

struct ObjectName {
  BucketName bucket;
  ObjectKey key;
  friend auto operator<=>(const ObjectName&, const ObjectName&) = default;
};

// What a percent-encoded text stands for. '%' without two hexadecimal digits stands for itself, '+' as well.
std::string percent_decode(std::string_view text);

// The key as clients write it into a path, without repeats and without the slash in front of it: everything encoded but
// A-Z a-z 0-9 - . _ ~ / (AWS's SDKs), the same in lower-case digits, and what Go, JavaScript and curl leave as it is.
std::vector<std::string> spellings(const ObjectKey& key);

}  // namespace nezha::s3
