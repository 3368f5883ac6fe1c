// The paths (CacheKey::path) under which one S3 object of an upstream may be stored: by path-style and by
// virtual-hosted requests, by http and https, and in several spellings of its key. A write to one of them is a write to
// all. Pure. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "nezha/config/settings.h"
#include "nezha/s3/object.h"

namespace nezha::cache {

// `path` itself, and the other paths of the same object: in the usual spellings of its key, under the other hosts that
// the upstream lists (`BUCKET.HOST` beside `HOST`) and the other scheme. With `endpoint:`, which is one server, under
// all hosts of the upstream. For other protocols: `path`, and with `endpoint:` the same under all hosts.
std::vector<std::string> paths_of_write(const std::string& path, const config::Upstream& upstream);

// All paths of an object by its name. `ports`: that requests name in Host, beside those of the schemes.
std::vector<std::string> paths_of_object(const s3::ObjectName& object, const config::Upstream& upstream,
                                         const std::vector<uint16_t>& ports);

// What stands before the keys that DeleteObjects at `path` (of a POST) names; it ends in '/'.
std::string prefix_of_bucket(const std::string& path);

// Whether `path` is, or lies under, `prefix`, which is one too: both without regard to percent-encoding, scheme and
// port.
bool is_under(const std::string& path, const std::string& prefix);

}  // namespace nezha::cache
