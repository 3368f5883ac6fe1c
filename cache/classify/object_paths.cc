#include "cache/classify/object_paths.h"

#include <algorithm>

namespace nezha::cache {
namespace {

constexpr std::string_view kHttps = ":443+tls";  // CacheKey says how the schemes are told apart

// "host" + ":port+tls" + "/path".
struct Parts {
  explicit Parts(const std::string& whole) {
    const size_t slash = std::min(whole.find('/'), whole.size());
    const size_t colon = std::min(whole.find(':'), slash);
    host = whole.substr(0, colon);
    port = whole.substr(colon, slash - colon);
    path = whole.substr(slash);
  }
  std::string host, port, path;
};

std::vector<std::string> ports_like(const std::string& port) {
  if (port.empty() || port == kHttps) return {"", std::string(kHttps)};
  return {port};
}

void add(std::vector<std::string>& out, std::string path) {
  if (std::find(out.begin(), out.end(), path) == out.end()) out.push_back(std::move(path));
}

bool lists(const config::Upstream& upstream, const std::string& host) {
  return std::any_of(upstream.hosts.begin(), upstream.hosts.end(),
                     [&](const auto& each) { return each.get() == host; });
}

}  // namespace

std::vector<std::string> paths_of_write(const std::string& path, const config::Upstream& upstream) {
  std::vector<std::string> out{path};
  if (upstream.protocol != config::Protocol::kS3) return out;
  const Parts parts(path);
  for (const auto& port : ports_like(parts.port)) {
    add(out, parts.host + port + parts.path);
    // Path-style: /BUCKET/KEY.
    const size_t slash = parts.path.find('/', 1);
    if (slash != std::string::npos) {
      const std::string hosted = parts.path.substr(1, slash - 1) + "." + parts.host;
      if (lists(upstream, hosted)) add(out, hosted + port + parts.path.substr(slash));
    }
    // Virtual-hosted: BUCKET.HOST. A bucket's name may have dots.
    for (size_t dot = parts.host.find('.'); dot != std::string::npos; dot = parts.host.find('.', dot + 1)) {
      const std::string host = parts.host.substr(dot + 1);
      if (lists(upstream, host)) add(out, host + port + "/" + parts.host.substr(0, dot) + parts.path);
    }
  }
  return out;
}

std::vector<std::string> paths_of_object(const s3::ObjectName& object, const config::Upstream& upstream,
                                         const std::vector<uint16_t>& ports) {
  std::vector<std::string> suffixes{"", std::string(kHttps)};
  for (const uint16_t port : ports) {
    if (port != 80) suffixes.push_back(":" + std::to_string(port));
    if (port != 443) suffixes.push_back(":" + std::to_string(port) + "+tls");
  }
  const std::string bucket_dot = object.bucket.get() + ".";
  std::vector<std::string> out;
  for (const auto& spelling : s3::spellings(object.key)) {
    for (const auto& host : upstream.hosts) {
      for (const auto& suffix : suffixes) {
        out.push_back(host.get() + suffix + "/" + object.bucket.get() + "/" + spelling);
        if (host.get().starts_with(bucket_dot)) out.push_back(host.get() + suffix + "/" + spelling);
      }
    }
  }
  return out;
}

std::string prefix_of_bucket(const std::string& path) { return path.ends_with('/') ? path : path + "/"; }

bool is_under(const std::string& path, const std::string& prefix) {
  const Parts a(path), b(prefix);
  return a.host == b.host && s3::percent_decode(a.path).starts_with(s3::percent_decode(b.path));
}

}  // namespace nezha::cache
