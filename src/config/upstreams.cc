// `upstreams:` -> Upstream values. Cross-checks: names unique, a host in one upstream only.
#include <map>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "src/config/names.h"
#include "src/config/sections.h"

namespace nezha::config {
namespace {

constexpr size_t kEndpointsMax = 64;

Result<Freshness> read_freshness(const View& view) {
  NEZHA_TRY(view.expect_map({"mode", "ttl"}));
  const auto mode_view = view.find("mode");
  const auto ttl_view = view.find("ttl");
  if (!mode_view && !ttl_view)
    return view.error("is empty; write {mode: http}, {mode: revalidate}, {ttl: 24h} or {mode: immutable}");
  Freshness freshness{.mode = Freshness::Mode::kTtl, .ttl_s = {}};
  if (mode_view) {
    NEZHA_TRY(const auto index, mode_view->one_of({"http", "revalidate", "ttl", "immutable"}));
    freshness.mode = static_cast<Freshness::Mode>(index);
  }
  if (freshness.mode != Freshness::Mode::kTtl) {
    if (ttl_view) return ttl_view->error("belongs to mode ttl only; remove it or write mode: ttl");
    return freshness;
  }
  if (!ttl_view) return view.error("has mode ttl but no ttl; add for example ttl: 24h");
  NEZHA_TRY(freshness.ttl_s, ttl_view->duration());
  return freshness;
}

// "http://HOST[:PORT]" or "https://…", nothing after it but an optional slash.
Result<Endpoint> read_endpoint(const View& view) {
  NEZHA_TRY(const auto url, view.scalar());
  const auto bad = [&](std::string_view why) {
    return view.error(quoted(url) + " " + std::string(why) + "; write http://HOST:PORT or https://HOST:PORT");
  };
  std::string_view rest = url;
  Endpoint endpoint;
  if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else if (rest.starts_with("https://")) {
    rest.remove_prefix(8);
    endpoint.tls = true;
  } else {
    return bad("does not start with http:// or https://");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@") != std::string_view::npos) return bad("is more than scheme, host and port");

  const size_t host_end = rest.starts_with('[') ? rest.find(']') : rest.find(':');
  const bool bracketed = rest.starts_with('[');
  if (bracketed && host_end == std::string_view::npos) return bad("has no closing bracket");
  const std::string_view host = bracketed ? rest.substr(1, host_end - 1) : rest.substr(0, host_end);
  const std::string_view after = host_end == std::string_view::npos ? "" : rest.substr(host_end + (bracketed ? 1 : 0));
  const auto ip = canonical_ip(host);
  if (!ip && (bracketed || !is_dns1123_subdomain(host)))
    return bad("has no valid host (a lower-case DNS name or an IP address)");
  endpoint.host = ip ? *ip : std::string(host);
  endpoint.port = endpoint.tls ? 443 : 80;
  if (after.empty()) return endpoint;
  const auto port = after[0] == ':' ? parse_decimal(after.substr(1)) : std::nullopt;
  if (!port || *port == 0 || *port > 65535) return bad("has a bad port");
  endpoint.port = static_cast<uint16_t>(*port);
  return endpoint;
}

// One, or a list.
Result<> read_endpoints(const View& view, Upstream& upstream) {
  if (!view.is_list()) {
    NEZHA_TRY(upstream.endpoint, read_endpoint(view));
    return ok();
  }
  NEZHA_TRY(auto endpoints, read_list<Endpoint>(view, kEndpointsMax, read_endpoint));
  if (endpoints.empty()) return view.error("is empty; write http://HOST:PORT, or a list of such");
  upstream.endpoint = endpoints.front();
  endpoints.erase(endpoints.begin());
  for (const Endpoint& other : endpoints) {
    if (other.tls != upstream.endpoint->tls)
      return view.error("mixes http:// and https://; write all with one of them");
  }
  if (!endpoints.empty()) upstream.more_endpoints = std::make_shared<const std::vector<Endpoint>>(std::move(endpoints));
  return ok();
}

// `credentialsSecretRef: {name: NAME}`, and what needs it.
Result<> read_credentials(const View& view, Upstream& upstream) {
  if (const auto reference = view.find("credentialsSecretRef")) {
    if (upstream.protocol != Protocol::kS3)
      return reference->error("is for protocol s3; add protocol: s3, or remove it");
    NEZHA_TRY(reference->expect_map({"name"}));
    NEZHA_TRY(const auto name, reference->require("name", "team-a-s3"));
    NEZHA_TRY(upstream.credentials_secret, read_secret_name(name));
  }
  if (const auto write = view.find("writeThrough")) {
    NEZHA_TRY(const auto index, write->one_of({"none", "cache"}));
    upstream.write_through = index == 1;
    if (upstream.write_through && upstream.credentials_secret.empty())
      return write->error("needs keys to read with; add credentialsSecretRef, or write none");
  }
  return ok();
}

Result<Upstream> read_upstream(const View& view) {
  NEZHA_TRY(view.expect_map(
      {"name", "hosts", "protocol", "tls", "freshness", "endpoint", "credentialsSecretRef", "writeThrough"}));
  NEZHA_TRY(const auto name_view, view.require("name", "public-datasets"));
  NEZHA_TRY(auto name, read_name(name_view));
  NEZHA_TRY(const auto hosts_view, view.require("hosts", "[storage.googleapis.com]"));
  Upstream upstream;
  upstream.name = UpstreamName(std::move(name));
  NEZHA_TRY(upstream.hosts, read_list<HostName>(hosts_view, limits::kHostsPerUpstreamMax, read_host));
  if (upstream.hosts.empty()) return hosts_view.error("is empty; list at least one host");
  if (const auto protocol = view.find("protocol")) {
    NEZHA_TRY(const auto index, protocol->one_of({"http", "s3"}));
    upstream.protocol = static_cast<Protocol>(index);
  }
  if (const auto tls = view.find("tls")) {
    NEZHA_TRY(const auto index, tls->one_of({"passthrough", "intercept"}));
    upstream.tls = static_cast<TlsMode>(index);
  }
  upstream.freshness.mode = upstream.protocol == Protocol::kS3 ? Freshness::Mode::kRevalidate : Freshness::Mode::kHttp;
  if (const auto freshness = view.find("freshness")) {
    NEZHA_TRY(upstream.freshness, read_freshness(*freshness));
  }
  if (const auto endpoint = view.find("endpoint")) {
    NEZHA_TRY(read_endpoints(*endpoint, upstream));
  }
  NEZHA_TRY(read_credentials(view, upstream));
  return upstream;
}

// Which upstream has each host so far.
Result<> claim_hosts(const Upstream& upstream, const View& view, std::map<std::string, std::string>& owners) {
  const auto hosts = view.find("hosts");
  NEZHA_TRY(const auto host_views, hosts->items(limits::kHostsPerUpstreamMax));
  for (size_t i = 0; i < upstream.hosts.size(); ++i) {
    const auto& host = upstream.hosts[i].get();
    const auto [owner, is_new] = owners.emplace(host, upstream.name.get());
    if (is_new) continue;
    return host_views[i].error(quoted(host) + " is already a host of upstream " + quoted(owner->second) +
                               "; a host belongs to one upstream, remove one of the two");
  }
  return ok();
}

}  // namespace

Result<std::vector<Upstream>> read_upstreams(const View& top) {
  const auto section = top.find("upstreams");
  if (!section) return std::vector<Upstream>();
  NEZHA_TRY(const auto views, section->items(limits::kUpstreamsMax));
  std::vector<Upstream> upstreams;
  std::map<std::string, std::string> owners;
  std::map<std::string, size_t> names;
  for (size_t i = 0; i < views.size(); ++i) {
    NEZHA_TRY(auto upstream, read_upstream(views[i]));
    const auto [first, is_new] = names.emplace(upstream.name.get(), i);
    if (!is_new) {
      return views[i].find("name")->error(quoted(upstream.name.get()) + " is already the name of upstreams[" +
                                          std::to_string(first->second) + "]; give each upstream a name of its own");
    }
    NEZHA_TRY(claim_hosts(upstream, views[i], owners));
    upstreams.push_back(std::move(upstream));
  }
  return upstreams;
}

}  // namespace nezha::config
