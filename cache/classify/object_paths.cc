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

// Behind whose hosts the same object is stored. One server behind `endpoint:` takes requests to every port.
std::vector<std::string> ports_like(const std::string& port, bool one_server) {
  if (port.empty() && one_server) return {""};
  if (port.empty() || port == kHttps) return {"", std::string(kHttps)};
  return one_server ? std::vector<std::string>{port, ""} : std::vector<std::string>{port};
}

std::vector<std::string> spelled(const std::string& path) {
  std::vector<std::string> out{path};
  if (path.empty()) return out;
  for (const auto& key : s3::spellings(s3::ObjectKey(s3::percent_decode(std::string_view(path).substr(1)))))
    out.push_back("/" + key);
  return out;
}

// An object may be addressed as this path of this host.
using Address = std::pair<std::string, std::string>;

void add_s3_addresses(const Parts& parts, const config::Upstream& upstream, std::vector<Address>& out) {
  const bool one_server = upstream.endpoint.has_value();
  // Path-style: /BUCKET/KEY.
  const size_t slash = parts.path.find('/', 1);
  const bool has_key = slash != std::string::npos;
  const std::string bucket_dot = has_key ? parts.path.substr(1, slash - 1) + "." : "";
  // Virtual-hosted: BUCKET.HOST. A bucket's name may have dots.
  std::vector<std::pair<std::string, std::string>> under;  // HOST, /BUCKET/KEY
  for (size_t dot = parts.host.find('.'); dot != std::string::npos; dot = parts.host.find('.', dot + 1))
    under.emplace_back(parts.host.substr(dot + 1), "/" + parts.host.substr(0, dot) + parts.path);
  for (const auto& each : upstream.hosts) {
    const std::string& host = each.get();
    const bool hosts_it = has_key && host.starts_with(bucket_dot);
    if (hosts_it && (one_server || host == bucket_dot + parts.host)) out.emplace_back(host, parts.path.substr(slash));
    for (const auto& [outer, path] : under) {
      if (one_server || host == outer) out.emplace_back(host, path);
    }
  }
}

}  // namespace

std::vector<std::string> paths_of_write(const std::string& path, const config::Upstream& upstream) {
  const Parts parts(path);
  const bool one_server = upstream.endpoint.has_value(), is_s3 = upstream.protocol == config::Protocol::kS3;
  std::vector<Address> addresses{{parts.host, parts.path}};
  for (const auto& host : upstream.hosts) {
    if (one_server) addresses.emplace_back(host.get(), parts.path);
  }
  if (is_s3) add_s3_addresses(parts, upstream, addresses);
  std::vector<std::string> out{path};
  const std::vector<std::string> ports =
      is_s3 || one_server ? ports_like(parts.port, one_server) : std::vector<std::string>{parts.port};
  for (const auto& [host, raw] : addresses) {
    for (const auto& spelling : is_s3 ? spelled(raw) : std::vector<std::string>{raw}) {
      for (const auto& port : ports) out.push_back(host + port + spelling);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
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
