// Settings: the whole configuration as frozen, typed values. One struct per section of the file.
// Produced by parse.h, read by the webhook, the cache and the command line. No I/O, no defaults hidden elsewhere.
// Threads: immutable after parsing; share by std::shared_ptr<const Settings>.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nezha/base/named.h"

namespace nezha::config {

enum class Protocol { kHttp, kS3 };
enum class TlsMode {
  kPassthrough,  // port 443 is relayed by SNI, never decrypted, never cached
  kIntercept,    // terminated with a leaf certificate for the name, cached, fetched over verified TLS
};

// How old a stored answer may be when a client gets it. docs/semantics.md says what each mode can show a reader.
struct Freshness {
  enum class Mode {
    kHttp,        // RFC 9111: what the server's Cache-Control, Expires, Last-Modified say
    kRevalidate,  // every hit is checked with the source first (If-None-Match)
    kTtl,         // fresh for `ttl_s` from the fetch, whatever the server says, except no-store and private
    kImmutable,   // never checked again
  };
  Mode mode = Mode::kHttp;
  std::chrono::seconds ttl_s{0};  // only with kTtl
  friend bool operator==(const Freshness&, const Freshness&) = default;
};

// Where to connect instead of resolving the request's host: `endpoint: http://rook-ceph-rgw.rook:80`.
struct Endpoint {
  bool tls = false;
  std::string host;  // DNS name or IP address (IPv6 without brackets)
  uint16_t port = 0;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

struct Upstream {
  UpstreamName name;
  std::vector<HostName> hosts;  // at least one; a host belongs to one upstream only
  Protocol protocol = Protocol::kHttp;
  TlsMode tls = TlsMode::kPassthrough;
  Freshness freshness;  // default: kHttp for protocol http, kRevalidate for s3
  std::optional<Endpoint> endpoint = std::nullopt;
  // More of them, of the same scheme and with the same data; null: none. Shared, because requests under way keep them.
  std::shared_ptr<const std::vector<Endpoint>> more_endpoints = nullptr;
  // The mounted Secret with keys that the cache checks clients' signatures by, and its own; empty: none. kS3 only.
  std::string credentials_secret = {};
  bool write_through = false;  // what was written is fetched into the cache at once; needs credentials_secret
};

// A Kubernetes label selector (matchLabels and matchExpressions, all must hold).
struct LabelSelector {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist };
  struct Requirement {
    std::string key;
    Operator op = Operator::kExists;
    std::vector<std::string> values;
    friend bool operator==(const Requirement&, const Requirement&) = default;
  };
  std::map<std::string, std::string> match_labels;
  std::vector<Requirement> match_expressions;
  friend bool operator==(const LabelSelector&, const LabelSelector&) = default;
};

enum class Mode { kCentral, kSidecar };

struct InjectionRule {
  RuleName name;
  LabelSelector selector;
  std::vector<UpstreamName> upstreams;  // each names an entry of Settings::upstreams
  Mode mode = Mode::kCentral;
};

// One item of the ancestor's format (ConfigMap `hostaliases-config`): a pod in an opted-in namespace whose label
// `app` has the value `label` gets exactly these aliases.
struct AncestorRule {
  struct Alias {
    IpAddress ip;
    std::vector<HostName> hosts;
    friend bool operator==(const Alias&, const Alias&) = default;
  };
  RuleName name;
  std::string app;    // informational, kept for messages
  std::string label;  // the wanted value of the pod's label `app`
  std::vector<Alias> aliases;
};

// Which admin upstreams a ConfigMap of a user's namespace may use in its own injection rules.
// A user's namespace never brings hosts or addresses of its own.
struct Delegation {
  std::vector<std::string> namespaces;  // names, or "*" for every namespace
  std::vector<UpstreamName> upstreams;  // names, or the single entry "*"
};

enum class Medium { kMemory, kPmem, kNvme };

struct TierSettings {
  Medium medium = Medium::kNvme;
  std::string path;         // a directory of our own; empty for kMemory
  uint64_t size_bytes = 0;  // hard limit
};

struct CacheSettings {
  uint64_t memory_bytes = 0;  // 0: derived from the cgroup's limit
  std::vector<TierSettings> tiers;
  std::string credentials_directory = "/etc/nezha-credentials";  // a folder for each mounted Secret, by its name
};

// Pods with rules of mode sidecar: the container that they get.
struct SidecarSettings {
  enum class Volume {
    kEmptyDir,   // disk of the node
    kMemory,     // none: a tier of memory, beside memory_bytes in the container's limit
    kEphemeral,  // a volume of storage_class that lives as long as the pod
  };
  std::string image;
  Volume volume = Volume::kEmptyDir;
  uint64_t size_bytes = uint64_t{10} << 30;  // of the volume; the cache itself keeps less
  std::string storage_class;                 // of kEphemeral, as the next two; empty: the cluster's default
  std::string snapshot;                      // a VolumeSnapshot of the pod's namespace to begin with; empty: none
  Medium medium = Medium::kNvme;             // kPmem: a volume of a PMem-CSI class
  uint32_t cpu_millicores = 500;             // request and limit
  uint64_t memory_bytes = uint64_t{512} << 20;
};

struct WebhookSettings {
  std::optional<IpAddress> cache_address;  // pins what central aliases point at
  // Without a cluster: what central aliases of intercepted hosts point at, and whether namespaces trust the cache. A
  // cluster knows both by itself.
  std::optional<IpAddress> cache_tls_address;
  bool trust = false;
  std::optional<SidecarSettings> sidecar;  // absent: mode sidecar falls back to central
};

struct ListenAddress {
  std::string host;  // an IP address
  uint16_t port = 0;
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

struct ListenSettings {
  std::vector<ListenAddress> http;
  std::vector<ListenAddress> https;
  std::vector<ListenAddress> relay;  // TLS as well, but never intercepted
  std::optional<ListenAddress> admin;
  std::string admin_token_path;  // of the file with the token that changes on the admin port ask for; or empty
};

struct TlsSettings {
  struct Pair {
    std::string certificate_path;
    std::string key_path;
  };
  std::vector<Pair> certificates;  // leaves, chosen by SNI
  std::string directory;           // more of them: each *.crt with tls.key, followed as a mounted Secret; or empty
};

struct Settings {
  std::vector<Upstream> upstreams;
  std::vector<InjectionRule> injection;
  std::vector<Delegation> delegation;
  CacheSettings cache;
  WebhookSettings webhook;
  ListenSettings listen;
  std::vector<ListenAddress> resolver_servers;  // empty: the nameservers of /etc/resolv.conf
  TlsSettings tls;

  // The entry with this name, or null. Borrowed from *this.
  const Upstream* find_upstream(const UpstreamName& name) const;
  // The upstream that serves this host (lower case, no port), or null. Borrowed from *this.
  const Upstream* find_host(const HostName& host) const;
};

}  // namespace nezha::config
