// Aim: every mistake the schema knows has one message with source, path, line, what is wrong and what to do.
#include <gtest/gtest.h>

#include <string>

#include "nezha/config/parse.h"
#include "test/unit/config/expect.h"

namespace nezha::config {
namespace {

struct Case {
  std::string yaml;
  std::string message;  // after "f.yaml: "
};

void expect_messages(std::initializer_list<Case> cases) {
  for (const auto& [yaml, message] : cases)
    EXPECT_EQ(error_of(parse_settings(yaml, "f.yaml")), "f.yaml: " + message) << yaml;
}

// An upstream with these keys beside its name and host.
std::string upstream_with(const std::string& keys) {
  return "upstreams:\n- {name: a, hosts: [a.example], " + keys + "}\n";
}

// A file with upstream `a` and one rule of this text.
std::string rule(const std::string& text) {
  return "upstreams: [{name: a, hosts: [a.example]}, {name: b, hosts: [b.example]}]\ninjection:\n- " + text + "\n";
}

constexpr const char* kSelector = "selector: {matchLabels: {x: y}}";

TEST(SettingsErrors, UnknownKeysAndKinds) {
  expect_messages({
      {"upstream: []\n", "upstream (line 1): is an unknown key; did you mean upstreams?"},
      {"Upstreams: []\n", "Upstreams (line 1): is an unknown key; did you mean upstreams?"},
      {"apiVersion: v1\nkind: ConfigMap\ndata: {}\n",
       "the document (line 1): is a Kubernetes object; give the text that stands in its data under config.yaml, or try "
       "the object with nezha explain --config"},
      {"frobnicate: 1\n",
       "frobnicate (line 1): is an unknown key; write upstreams, injection, delegation, cache, webhook, "
       "listen, resolver or tls"},
      {"upstreams: {}\n", "upstreams (line 1): is a map; write a list: [A, B]"},
      {"upstreams: a.example\n", "upstreams (line 1): is a single value; write a list: [A, B]"},
      {"upstreams: [a.example]\n",
       "upstreams[0] (line 1): is a single value; write a map with the keys name, hosts, "
       "protocol, tls, freshness, endpoint, credentialsSecretRef or writeThrough"},
      {"upstreams:\n- {name: a, host: [a.example]}\n",
       "upstreams[0].host (line 2): is an unknown key; did you mean hosts?"},
      {"upstreams:\n- {name: [a], hosts: [a.example]}\n",
       "upstreams[0].name (line 2): is a list; write a single value"},
      {"cache: []\n",
       "cache (line 1): is a list; write a map with the keys memory, tiers or "
       "credentialsDirectory"},
      {"upstreams: [~]\n",
       "upstreams[0] (line 1): is empty; write a map with the keys name, hosts, protocol, tls, "
       "freshness, endpoint, credentialsSecretRef or writeThrough"},
  });
}

TEST(SettingsErrors, UpstreamNamesAndHosts) {
  expect_messages({
      {"upstreams:\n- hosts: [a.example]\n",
       "upstreams[0] (line 2): has no name; add for example name: public-datasets"},
      {"upstreams:\n- name: a\n",
       "upstreams[0] (line 2): has no hosts; add for example hosts: [storage.googleapis.com]"},
      {"upstreams:\n- {name: a, hosts: []}\n", "upstreams[0].hosts (line 2): is empty; list at least one host"},
      {"upstreams:\n- {name: a, hosts: a.example}\n",
       "upstreams[0].hosts (line 2): is a single value; write a list: [A, B]"},
      {"upstreams:\n- {name: A_b, hosts: [a.example]}\n",
       "upstreams[0].name (line 2): \"A_b\" is not a name; write at most 63 of a-z, 0-9 and -, beginning and ending in "
       "one "
       "of a-z, 0-9"},
      {"upstreams:\n- {name: a.b, hosts: [a.example]}\n",
       "upstreams[0].name (line 2): \"a.b\" is not a name; write at most 63 of a-z, 0-9 and -, beginning and ending in "
       "one "
       "of a-z, 0-9"},
      {"upstreams:\n- {name: 12, hosts: [a.example]}\n",
       "upstreams[0].name (line 2): is a number; put it in quotes: \"12\""},
      {"upstreams:\n- {name: yes, hosts: [a.example]}\n",
       "upstreams[0].name (line 2): is a boolean; put it in quotes: \"yes\""},
      {"upstreams:\n- {name: '', hosts: [a.example]}\n", "upstreams[0].name (line 2): is an empty text; write a value"},
      {"upstreams:\n- {name: a, hosts: [a.example]}\n- {name: a, hosts: [b.example]}\n",
       "upstreams[1].name (line 3): \"a\" is already the name of upstreams[0]; give each upstream a name of its own"},
      {"upstreams:\n- {name: a, hosts: [a.example]}\n- {name: b, hosts: [b.example, a.example]}\n",
       "upstreams[1].hosts[1] (line 3): \"a.example\" is already a host of upstream \"a\"; a host belongs to one "
       "upstream, "
       "remove one of the two"},
      {"upstreams:\n- {name: a, hosts: [a.example, a.example]}\n",
       "upstreams[0].hosts[1] (line 2): \"a.example\" is already a host of upstream \"a\"; a host belongs to one "
       "upstream, "
       "remove one of the two"},
  });
}

TEST(SettingsErrors, Credentials) {
  expect_messages({
      {upstream_with("credentialsSecretRef: {name: keys}"),
       "upstreams[0].credentialsSecretRef (line 2): is for protocol s3; add protocol: s3, or remove it"},
      {upstream_with("protocol: s3, credentialsSecretRef: keys"),
       "upstreams[0].credentialsSecretRef (line 2): is a single value; write a map with the key name"},
      {upstream_with("protocol: s3, credentialsSecretRef: {name: ../keys}"),
       "upstreams[0].credentialsSecretRef.name (line 2): \"../keys\" is not the name of a Secret; write it as `kubectl "
       "get secrets` does"},
      {upstream_with("writeThrough: cache"),
       "upstreams[0].writeThrough (line 2): needs keys to read with; add credentialsSecretRef, or write none"},
      {"cache: {credentialsDirectory: keys}\n",
       "cache.credentialsDirectory (line 1): \"keys\" is not an absolute path; start it with /"},
  });
}

TEST(SettingsErrors, UpstreamOptions) {
  expect_messages({
      {upstream_with("protocol: ftp"),
       "upstreams[0].protocol (line 2): \"ftp\" is not a choice here; write http or s3"},
      {upstream_with("protocol: S3"), "upstreams[0].protocol (line 2): \"S3\" is not a choice here; write http or s3"},
      {upstream_with("tls: on"),
       "upstreams[0].tls (line 2): \"on\" is not a choice here; write passthrough or intercept"},
      {upstream_with("freshness: immutable"),
       "upstreams[0].freshness (line 2): is a single value; write a map with the keys mode or ttl"},
      {upstream_with("freshness: {}"),
       "upstreams[0].freshness (line 2): is empty; write {mode: http}, {mode: revalidate}, "
       "{ttl: 24h} or {mode: immutable}"},
      {upstream_with("freshness: {mode: always}"),
       "upstreams[0].freshness.mode (line 2): \"always\" is not a choice here; "
       "write http, revalidate, ttl or immutable"},
      {upstream_with("freshness: {mode: ttl}"),
       "upstreams[0].freshness (line 2): has mode ttl but no ttl; add for example ttl: 24h"},
      {upstream_with("freshness: {mode: http, ttl: 1h}"),
       "upstreams[0].freshness.ttl (line 2): belongs to mode ttl only; remove it or write mode: ttl"},
      {upstream_with("freshness: {ttl: 1y}"),
       "upstreams[0].freshness.ttl (line 2): \"1y\" is not a duration; write for example 90s, 15m, 24h or 7d"},
      {upstream_with("freshness: {ttl: -1h}"),
       "upstreams[0].freshness.ttl (line 2): \"-1h\" is not a duration; write for example 90s, 15m, 24h or 7d"},
      {upstream_with("freshness: {ttl: 0}"),
       "upstreams[0].freshness.ttl (line 2): \"0\" is no time at all; write at least 1s"},
      {upstream_with("endpoint: minio:9000"),
       "upstreams[0].endpoint (line 2): \"minio:9000\" does not start with http:// or "
       "https://; write http://HOST:PORT or https://HOST:PORT"},
      {upstream_with("endpoint: http://minio/data"),
       "upstreams[0].endpoint (line 2): \"http://minio/data\" is more than scheme, host and port; write "
       "http://HOST:PORT or "
       "https://HOST:PORT"},
      {upstream_with("endpoint: http://me:pw@minio"),
       "upstreams[0].endpoint (line 2): \"http://me:pw@minio\" is more than scheme, host and port; write "
       "http://HOST:PORT or "
       "https://HOST:PORT"},
      {upstream_with("endpoint: http://min_io"),
       "upstreams[0].endpoint (line 2): \"http://min_io\" has no valid host (a lower-case DNS name or an IP address); "
       "write "
       "http://HOST:PORT or https://HOST:PORT"},
      {upstream_with("endpoint: 'http://[::1'"),
       "upstreams[0].endpoint (line 2): \"http://[::1\" has no closing bracket; "
       "write http://HOST:PORT or https://HOST:PORT"},
      {upstream_with("endpoint: http://minio:0"),
       "upstreams[0].endpoint (line 2): \"http://minio:0\" has a bad port; write "
       "http://HOST:PORT or https://HOST:PORT"},
      {upstream_with("endpoint: []"),
       "upstreams[0].endpoint (line 2): is empty; write http://HOST:PORT, or a list of such"},
      {upstream_with("endpoint: ['http://a:80', 'https://b:443']"),
       "upstreams[0].endpoint (line 2): mixes http:// and https://; write all with one of them"},
      {upstream_with("endpoint: ['http://a:80', 'b']"),
       "upstreams[0].endpoint[1] (line 2): \"b\" does not start with http:// or https://; write http://HOST:PORT or "
       "https://HOST:PORT"},
      {upstream_with("endpoint: http://minio:65536"),
       "upstreams[0].endpoint (line 2): \"http://minio:65536\" has a bad port; "
       "write http://HOST:PORT or https://HOST:PORT"},
      {upstream_with("endpoint: 'http://'"),
       "upstreams[0].endpoint (line 2): \"http://\" has no valid host (a lower-case DNS "
       "name or an IP address); write http://HOST:PORT or https://HOST:PORT"},
  });
}

TEST(SettingsErrors, InjectionRules) {
  const std::string s = kSelector;
  expect_messages({
      {"injection: {}\n", "injection (line 1): is a map; write a list: [A, B]"},
      {rule("{" + s + ", upstreams: [a]}"), "injection[0] (line 3): has no name; add for example name: default"},
      {rule("{name: r, upstreams: [a]}"),
       "injection[0] (line 3): has no selector; add for example selector: {matchLabels: "
       "{nezha.io/inject: \"true\"}}"},
      {rule("{name: r, " + s + "}"),
       "injection[0] (line 3): has no upstreams; add for example upstreams: [public-datasets]"},
      {rule("{name: r, " + s + ", upstreams: []}"),
       "injection[0].upstreams (line 3): is empty; list at least one upstream"},
      {rule("{name: r, " + s + ", upstreams: [c]}"),
       "injection[0].upstreams[0] (line 3): \"c\" is not an upstream of this file; write a name from upstreams"},
      {rule("{name: r, " + s + ", upstreams: [a, b, a]}"),
       "injection[0].upstreams (line 3): lists \"a\" twice; keep one of them"},
      {rule("{name: r, " + s + ", upstreams: [a], mode: node}"),
       "injection[0].mode (line 3): \"node\" is not a choice here; write central or sidecar"},
      {rule("{name: r, " + s + ", upstreams: [a]}\n- {name: r, " + s + ", upstreams: [b]}"),
       "injection[1].name (line 4): \"r\" is already the name of injection[0]; give each rule a name of its own"},
  });
}

TEST(SettingsErrors, Selectors) {
  const auto with = [](const std::string& selector) {
    return rule("{name: r, upstreams: [a], selector: " + selector + "}");
  };
  expect_messages({
      {with("{}"),
       "injection[0].selector (line 3): is empty and would match every pod; write for example {matchLabels: "
       "{nezha.io/inject: \"true\"}}"},
      {with("{matchLabel: {x: y}}"),
       "injection[0].selector.matchLabel (line 3): is an unknown key; did you mean matchLabels?"},
      {with("{matchLabels: [x]}"), "injection[0].selector.matchLabels (line 3): is a list; write a map of KEY: VALUE"},
      {with("{matchLabels: {nezha.io/inject: true}}"),
       "injection[0].selector.matchLabels[\"nezha.io/inject\"] (line 3): is a boolean; put it in quotes: \"true\""},
      {with("{matchLabels: {x: 1}}"),
       "injection[0].selector.matchLabels.x (line 3): is a number; put it in quotes: \"1\""},
      {with("{matchLabels: {x: 'a b'}}"),
       "injection[0].selector.matchLabels.x (line 3): \"a b\" is not a label value; write at most 63 of A-Z, a-z, 0-9, "
       "'-', "
       "'_' and '.'"},
      {with("{matchLabels: {'-x': y}}"),
       "injection[0].selector.matchLabels.-x (line 3): \"-x\" is not a label key; write NAME or PREFIX/NAME as on the "
       "pod"},
      {with("{matchExpressions: [{operator: Exists}]}"),
       "injection[0].selector.matchExpressions[0] (line 3): has no key; add for example key: team"},
      {with("{matchExpressions: [{key: x}]}"),
       "injection[0].selector.matchExpressions[0] (line 3): has no operator; add for example operator: Exists"},
      {with("{matchExpressions: [{key: x, operator: in}]}"),
       "injection[0].selector.matchExpressions[0].operator (line 3): \"in\" is not a choice here; write In, NotIn, "
       "Exists or "
       "DoesNotExist"},
      {with("{matchExpressions: [{key: x, operator: In}]}"),
       "injection[0].selector.matchExpressions[0] (line 3): needs values with In and NotIn; add for example values: "
       "[a, b]"},
      {with("{matchExpressions: [{key: x, operator: Exists, values: [a]}]}"),
       "injection[0].selector.matchExpressions[0].values (line 3): is not used with Exists and DoesNotExist; remove "
       "it"},
      {with("{matchExpressions: [{key: a/b/c, operator: Exists}]}"),
       "injection[0].selector.matchExpressions[0].key (line 3): \"a/b/c\" is not a label key; write NAME or "
       "PREFIX/NAME as on "
       "the pod"},
  });
}

TEST(SettingsErrors, Delegation) {
  const auto with = [](const std::string& text) {
    return "upstreams: [{name: a, hosts: [a.example]}]\ndelegation:\n- " + text + "\n";
  };
  expect_messages({
      {with("{upstreams: [a]}"), "delegation[0] (line 3): has no namespaces; add for example namespaces: [team-a]"},
      {with("{namespaces: [x]}"),
       "delegation[0] (line 3): has no upstreams; add for example upstreams: [public-datasets]"},
      {with("{namespaces: [], upstreams: [a]}"),
       "delegation[0].namespaces (line 3): is empty; list at least one namespace, or \"*\" for all"},
      {with("{namespaces: [X], upstreams: [a]}"),
       "delegation[0].namespaces[0] (line 3): \"X\" is not a namespace name; write "
       "it as `kubectl get namespaces` does"},
      {with("{namespaces: [x], upstreams: [b]}"),
       "delegation[0].upstreams[0] (line 3): \"b\" is not an upstream of this file; "
       "write a name from upstreams, or \"*\""},
      {with("{namespaces: [x], upstreams: [a, '*']}"),
       "delegation[0].upstreams (line 3): has \"*\" beside names; write either"},
  });
}

TEST(SettingsErrors, CacheAndWebhook) {
  const auto tier = [](const std::string& text) { return "cache: {tiers: [{" + text + "}]}\n"; };
  expect_messages({
      {"cache: {memory: lots}\n",
       "cache.memory (line 1): \"lots\" is not a size; write bytes or a quantity such as 512Mi, 2Gi or 1Ti"},
      {"cache: {memory: 2GB}\n",
       "cache.memory (line 1): \"2GB\" is not a size; write bytes or a quantity such as 512Mi, 2Gi or 1Ti"},
      {"cache: {memory: 0}\n",
       "cache.memory (line 1): \"0\" is no space at all; write a size above zero or remove the key"},
      {tier("path: /c, size: 1Gi"), "cache.tiers[0] (line 1): has no medium; add for example medium: nvme"},
      {tier("medium: tape, path: /c, size: 1Gi"),
       "cache.tiers[0].medium (line 1): \"tape\" is not a choice here; write memory, pmem or nvme"},
      {tier("medium: nvme, path: /c"), "cache.tiers[0] (line 1): has no size; add for example size: 200Gi"},
      {tier("medium: nvme, size: 1Gi"),
       "cache.tiers[0] (line 1): has no path; add for example path: /cache/nezha, a directory "
       "for this tier alone"},
      {tier("medium: nvme, path: c, size: 1Gi"),
       "cache.tiers[0].path (line 1): \"c\" is not an absolute path; start it with /"},
      {tier("medium: nvme, path: /c, size: 16777215"),
       "cache.tiers[0].size (line 1): is too small for a tier; write at least 16Mi"},
      {"cache:\n  memory: 33554431\n",
       "cache.memory (line 2): is too small, because half of it is the only tier; write at least 32Mi, or list "
       "cache.tiers"},
      {tier("medium: memory, path: /c, size: 1Gi"),
       "cache.tiers[0].path (line 1): is not used by medium memory; remove it"},
      {tier("medium: nvme, path: /c, size: 1Gi}, {medium: pmem, path: /c, size: 1Gi"),
       "cache.tiers[1] (line 1): has the path of another tier; give each tier a place of its own"},
      {tier("medium: memory, size: 1Gi}, {medium: memory, size: 1Gi"),
       "cache.tiers[1] (line 1): is a second memory tier; give each tier a place of its own"},
      {"webhook: {cacheAddress: 10.0.0}\n",
       "webhook.cacheAddress (line 1): \"10.0.0\" is not an IP address; write for example 10.96.12.34 or fd00::12"},
      {"webhook: {cacheTlsAddress: x}\n",
       "webhook.cacheTlsAddress (line 1): \"x\" is not an IP address; write for example 10.96.12.34 or fd00::12"},
      {"webhook: {trust: maybe}\n", "webhook.trust (line 1): \"maybe\" is not a choice here; write false or true"},
      {"tls: {directory: tls}\n", "tls.directory (line 1): \"tls\" is not an absolute path; start it with /"},
      {"webhook: {sidecar: {size: 1Gi}}\n",
       "webhook.sidecar (line 1): has no image; add for example image: registry.example.org/nezha-cache:0.1.0"},
      {"webhook: {sidecar: {image: a b}}\n",
       "webhook.sidecar.image (line 1): \"a b\" is not the name of an image; remove the blanks"},
      {"webhook: {sidecar: {image: a, size: 63Mi}}\n",
       "webhook.sidecar.size (line 1): is too small; write at least 64Mi"},
      {"webhook: {sidecar: {image: a, volume: hostPath}}\n",
       "webhook.sidecar.volume (line 1): \"hostPath\" is not a choice here; write emptyDir, memory or ephemeral"},
      {"webhook: {sidecar: {image: a, storageClass: fast}}\n",
       "webhook.sidecar.storageClass (line 1): is for volume: ephemeral; add that, or remove this"},
      {"webhook: {sidecar: {image: a, volume: memory, snapshot: warm}}\n",
       "webhook.sidecar.snapshot (line 1): is for volume: ephemeral; add that, or remove this"},
      {"webhook: {sidecar: {image: a, volume: ephemeral, snapshot: a_b}}\n",
       "webhook.sidecar.snapshot (line 1): \"a_b\" is not the name of a VolumeSnapshot"},
      {"webhook: {sidecar: {image: a, volume: ephemeral, medium: memory}}\n",
       "webhook.sidecar.medium (line 1): \"memory\" is not a choice here; write nvme or pmem"},
      {"webhook: {sidecar: {image: a, volume: ephemeral, storageClass: Fast}}\n",
       "webhook.sidecar.storageClass (line 1): \"Fast\" is not the name of a StorageClass"},
      {"webhook: {sidecar: {image: a, resources: {cpu: 0.5}}}\n",
       "webhook.sidecar.resources.cpu (line 1): \"0.5\" is not an amount of CPU; write for example 500m or 2"},
      {"webhook: {sidecar: {image: a, resources: {memory: 127Mi}}}\n",
       "webhook.sidecar.resources.memory (line 1): is too small; write at least 128Mi"},
      {"webhook: {cacheAdress: 10.0.0.1}\n",
       "webhook.cacheAdress (line 1): is an unknown key; did you mean cacheAddress?"},
  });
}

TEST(SettingsErrors, ListenResolverTls) {
  expect_messages({
      {"listen: {adminTokenFile: /etc/token}\n",
       "listen.adminTokenFile (line 1): is for listen.admin, which is not there; add it or remove this"},
      {"listen: {http: 0.0.0.0:80}\n", "listen.http (line 1): is a single value; write a list: [A, B]"},
      {"listen: {http: ['80']}\n",
       "listen.http[0] (line 1): \"80\" does not start with an IP address; write IP:PORT, for "
       "example 0.0.0.0:80 or [::]:80"},
      {"listen: {http: [':80']}\n",
       "listen.http[0] (line 1): \":80\" does not start with an IP address; write IP:PORT, for "
       "example 0.0.0.0:80 or [::]:80"},
      {"listen: {http: [localhost:80]}\n",
       "listen.http[0] (line 1): \"localhost:80\" does not start with an IP address; write "
       "IP:PORT, for example 0.0.0.0:80 or [::]:80"},
      {"listen: {http: [0.0.0.0]}\n",
       "listen.http[0] (line 1): \"0.0.0.0\" has no port; write IP:PORT, for example 0.0.0.0:80 "
       "or [::]:80"},
      {"listen: {http: ['::']}\n",
       "listen.http[0] (line 1): \"::\" has no port; write IP:PORT, for example 0.0.0.0:80 or [::]:80"},
      {"listen: {admin: 127.0.0.1:99999}\n",
       "listen.admin (line 1): \"127.0.0.1:99999\" has a bad port; write a number from 1 to 65535"},
      {"listen: {admin: '127.0.0.1:'}\n",
       "listen.admin (line 1): \"127.0.0.1:\" has a bad port; write a number from 1 to 65535"},
      {"resolver: {}\n", "resolver (line 1): has no servers; add for example servers: [\"10.96.0.10:53\"]"},
      {"resolver: {servers: []}\n",
       "resolver.servers (line 1): is empty; list a server, or remove resolver to use /etc/resolv.conf"},
      {"resolver: {servers: ['10.96.0.10:0']}\n",
       "resolver.servers[0] (line 1): \"10.96.0.10:0\" has port 0; write a number from 1 to 65535"},
      {"resolver: {servers: [dns.example]}\n",
       "resolver.servers[0] (line 1): \"dns.example\" does not start with an IP "
       "address; write IP:PORT, for example 10.96.0.10:53"},
      {"tls: {certificates: [{certificate: /a.crt}]}\n",
       "tls.certificates[0] (line 1): has no key; add for example key: /tls/tls.key"},
      {"tls: {certificates: [{certificate: a.crt, key: /a.key}]}\n",
       "tls.certificates[0].certificate (line 1): \"a.crt\" is not an absolute path; start it with /"},
      {"tls:\n  ca: {certificate: /a.crt, key: /a.key}\n",
       "tls.ca (line 2): is not supported in this version; remove it and list the hosts' certificates in "
       "tls.certificates"},
  });
}

TEST(SettingsErrors, CountsAreLimited) {
  std::string tiers;
  for (int i = 0; i <= 8; ++i)
    tiers += (i ? ", " : "") + ("{medium: nvme, path: /t" + std::to_string(i)) + ", size: 1Gi}";
  expect_messages({{"cache: {tiers: [" + tiers + "]}\n", "cache.tiers (line 1): has 9 items; at most 8 are allowed"}});
  std::string hosts;
  for (int i = 0; i <= 1000; ++i) hosts += (i ? ", h" : "h") + std::to_string(i) + ".example";
  expect_messages({{"upstreams:\n- {name: a, hosts: [" + hosts + "]}\n",
                    "upstreams[0].hosts (line 2): has 1001 items; at most 1000 are allowed"}});
}

TEST(SettingsErrors, ValuesInMessagesAreShortened) {
  const std::string message = error_of(parse_settings(upstream_with("protocol: " + std::string(5000, 'x')), "f.yaml"));
  EXPECT_LT(message.size(), 200U) << message;
}

}  // namespace
}  // namespace nezha::config
