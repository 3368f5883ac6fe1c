#include "cache/purge/purge.h"

#include <algorithm>

#include "cache/classify/object_paths.h"
#include "cache/purge/purge_request.h"
#include "nezha/base/text.h"
#include "nezha/s3/event_notification.h"

namespace nezha::cache {
namespace {

using Upstreams = std::vector<config::Upstream>;

std::string_view host_of(std::string_view path) { return path.substr(0, path.find_first_of(":/")); }

Store::PathPredicate in_upstream(const config::Upstream& upstream) {
  return [&upstream](const std::string& path) {
    return std::any_of(upstream.hosts.begin(), upstream.hosts.end(),
                       [&](const HostName& host) { return host.get() == host_of(path); });
  };
}

// What stands before the first '/', and what behind it, without percent-encoding.
Store::PathPredicate on_host(const std::string& host, const std::string& text, bool prefix) {
  return [host, text, prefix](const std::string& path) {
    if (host_of(path) != host) return false;
    const std::string decoded = s3::percent_decode(std::string_view(path).substr(path.find('/')));
    return prefix ? decoded.starts_with(text) : decoded == text;
  };
}

Store::PathPredicate in_bucket(const Upstreams& upstreams, const std::string& bucket, const std::string& prefix) {
  std::vector<Store::PathPredicate> all;
  for (const auto& upstream : upstreams) {
    if (upstream.protocol != config::Protocol::kS3) continue;
    for (const auto& host : upstream.hosts) {
      all.push_back(on_host(host.get(), "/" + bucket + "/" + prefix, true));
      if (host.get().starts_with(bucket + ".")) all.push_back(on_host(host.get(), "/" + prefix, true));
    }
  }
  return [all = std::move(all)](const std::string& path) {
    return std::any_of(all.begin(), all.end(), [&](const auto& matches) { return matches(path); });
  };
}

std::vector<std::string> paths_everywhere(const s3::ObjectName& object, const Upstreams& upstreams,
                                          const std::vector<uint16_t>& ports) {
  std::vector<std::string> out;
  for (const auto& upstream : upstreams) {
    if (upstream.protocol != config::Protocol::kS3) continue;
    const auto paths = paths_of_object(object, upstream, ports);
    out.insert(out.end(), paths.begin(), paths.end());
  }
  return out;
}

}  // namespace

Purger::Purger(Store& store, Approvals& approvals, const Clock& clock, const RouteStore& routes,
               std::vector<uint16_t> ports, obs::Log& log, obs::Metrics& metrics)
    : store_(store),
      approvals_(approvals),
      clock_(clock),
      routes_(routes),
      ports_(std::move(ports)),
      log_(log),
      purged_(metrics.counter("nezha_cache_purged_paths_total", "Paths dropped by purges and event notifications")),
      events_(metrics.counter("nezha_cache_event_objects_total", "Objects named by event notifications of S3")) {}

Result<size_t> Purger::purge(std::string_view json) {
  NEZHA_TRY(const PurgeRequest request, parse_purge_request(json));
  const std::shared_ptr<const Routes> routes = routes_.current();
  const Upstreams& upstreams = routes->settings().upstreams;
  size_t count = 0;
  if (request.scope == PurgeRequest::Scope::kBucket && request.prefix) {
    count = store_.purge_if(in_bucket(upstreams, request.name, request.text));
  } else if (request.scope == PurgeRequest::Scope::kBucket) {
    const s3::ObjectName object{s3::BucketName(request.name), s3::ObjectKey(request.text)};
    count = store_.purge(paths_everywhere(object, upstreams, ports_));
  } else if (request.scope == PurgeRequest::Scope::kHost) {
    count = store_.purge_if(on_host(request.name, request.text, request.prefix));
  } else {
    const config::Upstream* upstream = routes->settings().find_upstream(UpstreamName(request.name));
    if (!upstream) return fail(Remedy::kFixInput, "\"" + printable(request.name, 80) + "\" is no configured upstream");
    count = store_.purge_if(in_upstream(*upstream));
  }
  approvals_.end_all(clock_.now());
  purged_.add(static_cast<double>(count));
  log_.info("purged", {{"name", printable(request.name, 200)},
                       {"what", printable(request.text, 200)},
                       {"paths", std::to_string(count)}});
  return count;
}

Result<Purger::TakenEvents> Purger::take_events(std::string_view json) {
  NEZHA_TRY(const auto events, s3::parse_event_notification(json));
  const std::shared_ptr<const Routes> routes = routes_.current();
  std::vector<std::string> paths;
  for (const auto& object : events.named) {
    const auto more = paths_everywhere(object, routes->settings().upstreams, ports_);
    paths.insert(paths.end(), more.begin(), more.end());
  }
  const size_t count = store_.purge(paths);
  for (const auto& path : paths) approvals_.end(path, clock_.now());
  events_.add(static_cast<double>(events.named.size()));
  purged_.add(static_cast<double>(count));
  if (events.not_understood > 0)
    log_.warning("an event notification has records that name no object",
                 {{"records", std::to_string(events.not_understood)}});
  return TakenEvents{count, events.not_understood};
}

}  // namespace nezha::cache
