#include "cache/classify/classify.h"

#include <algorithm>
#include <array>
#include <span>

#include "nezha/base/text.h"
#include "nezha/s3/object.h"

namespace nezha::cache {
namespace {

constexpr std::array<std::string_view, 3> kPreconditions = {"If-Match", "If-None-Match", "If-Modified-Since"};

// Sub-resources of S3 objects and buckets that are never stored.
constexpr std::array<std::string_view, 12> kS3SubResources = {"acl",       "policy",   "tagging",  "select",
                                                              "uploads",   "location", "torrent",  "versions",
                                                              "lifecycle", "cors",     "uploadId", "list-type"};

constexpr size_t kLoopHopsMax = 8;
constexpr std::string_view kTlsMark = "+tls";  // behind the port in a key

Classified refuse(int status, std::string reason) {
  Classified out;
  out.status = status;
  out.reason = std::move(reason);
  return out;
}

struct Target {
  std::string host;  // lower case, no port
  std::optional<uint16_t> port;
  std::string_view path;   // raw, begins with '/'
  std::string_view query;  // raw, without '?'
};

// "host", "host:port", "[v6]:port".
bool split_authority(std::string_view authority, Target& out) {
  std::string_view host = authority, port;
  if (authority.starts_with('[')) {
    const size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return false;
    host = authority.substr(0, bracket + 1);
    port = authority.substr(bracket + 1);
    if (!port.empty() && port[0] != ':') return false;
    if (!port.empty()) port.remove_prefix(1);
  } else if (const size_t colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
  }
  if (host.empty()) return false;
  if (!port.empty()) {
    const auto number = parse_decimal(port);
    if (!number || *number == 0 || *number > 65535) return false;
    out.port = static_cast<uint16_t>(*number);
  }
  out.host = to_lower(host);
  if (out.host.ends_with('.')) out.host.pop_back();  // the root label names the same host
  return true;
}

// origin-form and absolute-form (RFC 9112 §3.2); absolute-form's authority replaces Host.
bool split_target(const http::RequestHead& head, bool tls, Target& out) {
  std::string_view target = head.target, authority = head.fields.find("Host").value_or("");
  if (!target.starts_with('/')) {
    const std::string_view scheme = tls ? "https://" : "http://";
    if (target.size() < scheme.size() || !iequals(target.substr(0, scheme.size()), scheme)) return false;
    target.remove_prefix(scheme.size());
    const size_t slash = std::min(target.find_first_of("/?"), target.size());
    authority = target.substr(0, slash);
    target.remove_prefix(slash);
  }
  if (target.find('#') != std::string_view::npos) return false;
  const size_t question = std::min(target.find('?'), target.size());
  out.path = target.substr(0, question);
  out.query = question < target.size() ? target.substr(question + 1) : std::string_view{};
  return split_authority(authority, out);
}

bool is_loop(const http::Fields& fields, std::string_view loop_id) {
  size_t hops = 0;
  for (const auto member : http::list_members(fields, "CDN-Loop")) {
    const auto id = trim(member.substr(0, std::min(member.find(';'), member.size())));
    if (id == loop_id) return true;
    hops += id.starts_with("nezha-");
  }
  return hops >= kLoopHopsMax;
}

bool carries_credentials(const http::Fields& fields) {
  bool found = false;
  fields.for_each([&](std::string_view name, std::string_view) { found |= is_credential_field(name); });
  return found;
}

bool is_form(const http::Fields& fields) {
  const std::string_view type = fields.find("Content-Type").value_or("");
  return iequals(trim(type.substr(0, type.find(';'))), "multipart/form-data");
}

bool is_safe(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "OPTIONS" || method == "TRACE";
}

// Decoded: servers do not tell `?%64elete` from `?delete`.
std::string parameter_name(std::string_view parameter) {
  return s3::percent_decode(parameter.substr(0, std::min(parameter.find('='), parameter.size())));
}

bool has_parameter(std::string_view query, std::string_view wanted) {
  for (const auto parameter : split(query, '&')) {
    if (parameter_name(parameter) == wanted) return true;
  }
  return false;
}

// What SigV4 and its Google kin put into a presigned URL. Others of that prefix choose what is answered: they stay.
bool is_v4_parameter(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kParts = {"Algorithm",     "Credential", "Date",          "Expires",
                                                             "SignedHeaders", "Signature",  "Security-Token"};
  const size_t prefix = iequals(name.substr(0, 6), "X-Amz-") ? 6 : iequals(name.substr(0, 7), "X-Goog-") ? 7 : 0;
  if (prefix == 0) return false;
  return std::any_of(kParts.begin(), kParts.end(), [&](auto part) { return iequals(name.substr(prefix), part); });
}

bool names_sub_resource(std::string_view query) {
  for (const auto parameter : split(query, '&')) {
    const auto name = parameter_name(parameter);
    if (std::find(kS3SubResources.begin(), kS3SubResources.end(), name) != kS3SubResources.end()) return true;
  }
  return false;
}

bool has_any(const http::Fields& fields, std::span<const std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return fields.has(name); });
}

// Why a GET or HEAD is relayed without looking into the store; empty when it is not.
const char* pass_reason(const http::RequestHead& head, const Classified& out, std::string_view query) {
  if (head.framing.kind != http::Framing::Kind::kNone) return "request-body";
  if (out.control.no_store) return "request-no-store";
  if (head.fields.has("X-Amz-Server-Side-Encryption-Customer-Algorithm")) return "sse-c";
  if (out.upstream->protocol == config::Protocol::kS3) {
    if (names_sub_resource(query)) return "s3-sub-resource";
    const std::string decoded = s3::percent_decode(query);
    if (decoded.find("prefix=") != std::string::npos || decoded.find("delimiter=") != std::string::npos)
      return "s3-listing";
  }
  return "";
}

uint16_t default_port(bool tls) { return tls ? 443 : 80; }

// What stands before the path in a key (CacheKey says why). `own`: https has a key of its own.
std::string authority_of(const Target& target, bool tls, bool own) {
  const uint16_t port = target.port.value_or(default_port(tls));
  if (tls && own) return target.host + ":" + std::to_string(port) + std::string(kTlsMark);
  return port == default_port(tls) ? target.host : target.host + ":" + std::to_string(port);
}

void read_range(const http::RequestHead& head, Classified& out) {
  const auto value = head.fields.find("Range");
  if (!value || out.head) return;
  const auto specs = http::parse_range(*value);
  if (!specs) return;
  if (specs->size() == 1)
    out.range = specs->front();
  else
    out.ranges = *specs;
}

}  // namespace

bool may_sign_for(const Classified& classified) {
  return classified.upstream->endpoint || classified.origin.port == default_port(classified.origin.tls);
}

bool is_credential_field(std::string_view name) {
  static constexpr std::array<std::string_view, 8> kTelling = {"auth",     "token",      "cookie", "api-key",
                                                               "password", "credential", "secret", "apikey"};
  if (iequals(name, "Proxy-Authorization")) return false;  // for a proxy, and it ends here
  const std::string lower = to_lower(name);
  return lower.starts_with("x-jfrog-art-api") || std::any_of(kTelling.begin(), kTelling.end(), [&](auto part) {
           return lower.find(part) != std::string::npos;
         });
}

std::string strip_signature(std::string_view query, bool& removed) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "Signature", "AWSAccessKeyId", "Expires", "GoogleAccessId", "Policy", "Key-Pair-Id", "sig", "se", "sp", "sv"};
  std::string out;
  removed = false;
  if (query.empty()) return out;
  // Bare names like Expires count only beside a signature: another server may give them another meaning.
  const bool v2 = has_parameter(query, "Signature");
  const bool sas = has_parameter(query, "sig") && has_parameter(query, "sv");
  for (const auto parameter : split(query, '&')) {
    const auto name = parameter_name(parameter);
    const bool v4 = is_v4_parameter(name);
    const auto listed = std::find(kNames.begin(), kNames.end(), name);
    const bool short_name = listed != kNames.end() && listed - kNames.begin() >= 6;
    if (v4 || (listed != kNames.end() && (short_name ? sas : v2))) {
      removed = true;
      continue;
    }
    if (!out.empty()) out += '&';
    out += parameter;
  }
  return out;
}

std::optional<std::string> path_of_reference(const CacheKey& key, std::string_view reference) {
  const size_t slash = key.path.find('/');
  const std::string authority = key.path.substr(0, slash);
  reference = reference.substr(0, std::min(reference.find_first_of("?#"), reference.size()));
  const size_t scheme = reference.find("://");
  if (scheme != std::string_view::npos || reference.starts_with("//")) {
    const bool tls = authority.ends_with(kTlsMark);
    if (scheme != std::string_view::npos && !iequals(reference.substr(0, scheme), tls ? "https" : "http"))
      return std::nullopt;
    reference.remove_prefix(scheme == std::string_view::npos ? 2 : scheme + 3);
    const size_t end = std::min(reference.find('/'), reference.size());
    Target target;
    if (!split_authority(reference.substr(0, end), target)) return std::nullopt;
    if (authority_of(target, tls, true) != authority) return std::nullopt;
    reference.remove_prefix(end);
    return authority + (reference.empty() ? "/" : std::string(reference));
  }
  if (reference.find(':') < reference.find('/')) return std::nullopt;  // another scheme
  if (reference.starts_with('/')) return authority + std::string(reference);
  if (reference.empty()) return key.path;
  // Relative: beside the target. What climbs with dots is not worth following: over-invalidation is never needed.
  if (reference.find("./") != std::string_view::npos) return std::nullopt;
  return key.path.substr(0, key.path.rfind('/') + 1) + std::string(reference);
}

void add_loop_mark(http::Fields& fields, std::string_view loop_id) { fields.add("CDN-Loop", loop_id); }

Classified classify(const http::RequestHead& head, const Routes& routes, std::string_view loop_id,
                    const Arrival& arrival) {
  if (head.method == "CONNECT") return refuse(501, "CONNECT is not served here");
  Target target;
  if (!split_target(head, arrival.tls, target)) return refuse(400, "the request target or Host is not valid");
  const auto* upstream = routes.find(target.host);
  if (!upstream) {
    return refuse(421, "this cache serves only the configured upstreams, and \"" + target.host +
                           "\" is not one of their hosts; add it to `upstreams[].hosts` of the nezha-config ConfigMap");
  }
  // RFC 9110 §7.4: the certificate vouched for this name alone.
  if (arrival.tls && target.host != arrival.server_name) {
    return refuse(421, "this TLS connection was opened for \"" + arrival.server_name + "\", not for \"" + target.host +
                           "\"; open another one for it");
  }
  if (is_loop(head.fields, loop_id))
    return refuse(508, "this request already came through here: the upstream's name leads back to the cache");

  Classified out;
  out.upstream = upstream;
  out.head = head.method == "HEAD";
  bool signed_query = false;
  out.key.path =
      authority_of(target, arrival.tls, !upstream->endpoint) + std::string(target.path.empty() ? "/" : target.path);
  out.key.query = strip_signature(target.query, signed_query);
  if (signed_query)
    out.credentials = Credentials::kSignedUrl;
  else if (carries_credentials(head.fields))
    out.credentials = Credentials::kField;
  if (upstream->endpoint)
    out.origin = {upstream->endpoint->tls, upstream->endpoint->host, upstream->endpoint->port, false, {},
                  upstream->more_endpoints};
  else
    out.origin = {arrival.tls, target.host, target.port.value_or(default_port(arrival.tls)), true};
  if (out.origin.tls) out.origin.server_name = target.host;

  if (head.method != "GET" && head.method != "HEAD") {
    out.kind = Classified::Kind::kPass;
    out.reason = "method";
    out.invalidates = !is_safe(head.method);
    const bool post = head.method == "POST" && upstream->protocol == config::Protocol::kS3 &&
                      head.framing.kind != http::Framing::Kind::kNone;
    out.bulk_delete = post && has_parameter(target.query, "delete");
    out.form_upload = post && !out.bulk_delete && is_form(head.fields);
    return out;
  }
  out.control = http::parse_cache_control(head.fields);
  if (head.fields.has("Pragma") && !head.fields.has("Cache-Control") &&
      iequals(trim(*head.fields.find("Pragma")), "no-cache")) {
    out.control.no_cache = true;  // RFC 9111 §5.4
  }
  out.conditional = has_any(head.fields, kPreconditions) || head.fields.has("If-Unmodified-Since");
  read_range(head, out);
  out.reason = pass_reason(head, out, target.query);
  out.kind = out.reason.empty() ? Classified::Kind::kLookUp : Classified::Kind::kPass;
  return out;
}

}  // namespace nezha::cache
