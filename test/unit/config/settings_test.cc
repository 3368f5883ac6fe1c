// Aim: every key of our format reaches its field, and every default is what the header says.
#include "nezha/config/settings.h"

#include <gtest/gtest.h>

#include "nezha/config/parse.h"
#include "test/unit/config/expect.h"

namespace nezha::config {
namespace {

using namespace std::chrono_literals;

Settings parsed(std::string_view yaml) { return value_of(parse_settings(yaml, "test")); }

constexpr std::string_view kFull = R"(
upstreams:
  - name: public-datasets
    hosts: [storage.googleapis.com, www.cs.toronto.edu]
    protocol: http
    tls: intercept
    freshness: {mode: revalidate}
  - name: team-s3
    protocol: s3
    hosts: [s3.eu-west-1.amazonaws.com, team-data.s3.eu-west-1.amazonaws.com]
    endpoint: http://rook-ceph-rgw.rook:8080
    freshness: {ttl: 24h}
    credentialsSecretRef: {name: team-s3-keys}
    writeThrough: cache
injection:
  - name: default
    selector: {matchLabels: {nezha.io/inject: "true"}}
    upstreams: [public-datasets, team-s3]
    mode: central
  - name: notebooks
    selector:
      matchExpressions:
        - {key: app, operator: In, values: [jupyter, vscode]}
        - {key: nezha.io/inject, operator: DoesNotExist}
    upstreams: [team-s3]
    mode: sidecar
delegation:
  - {namespaces: [team-a, team-b], upstreams: [team-s3]}
  - {namespaces: ["*"], upstreams: ["*"]}
cache:
  memory: 2Gi
  tiers:
    - {medium: pmem, path: /pmem/nezha, size: 200Gi}
    - {medium: nvme, path: /cache/nezha, size: 1Ti}
webhook:
  cacheAddress: 10.96.12.34
  cacheTlsAddress: 10.96.12.35
  trust: true
  sidecar:
    image: registry.example.org/nezha-cache:1
    size: 100Gi
    volume: ephemeral
    storageClass: fast
    snapshot: warm
    medium: pmem
    resources: {cpu: 1500m, memory: 2Gi}
listen: {http: ["0.0.0.0:80", "[::]:80"], https: ["0.0.0.0:443"], relay: ["0.0.0.0:444"], admin: "127.0.0.1:9180"}
resolver: {servers: ["10.96.0.10:5353", 10.96.0.11]}
tls:
  certificates: [{certificate: /tls/a.crt, key: /tls/a.key}]
  directory: /etc/nezha-tls
)";

TEST(Settings, ReadsUpstreams) {
  const Settings settings = parsed(kFull);
  ASSERT_EQ(settings.upstreams.size(), 2U);
  const Upstream& datasets = settings.upstreams[0];
  EXPECT_EQ(datasets.name.get(), "public-datasets");
  EXPECT_EQ(datasets.hosts, (std::vector{HostName("storage.googleapis.com"), HostName("www.cs.toronto.edu")}));
  EXPECT_EQ(datasets.protocol, Protocol::kHttp);
  EXPECT_EQ(datasets.tls, TlsMode::kIntercept);
  EXPECT_EQ(datasets.freshness, (Freshness{Freshness::Mode::kRevalidate, 0s}));
  EXPECT_FALSE(datasets.endpoint);
  const Upstream& s3 = settings.upstreams[1];
  EXPECT_EQ(s3.protocol, Protocol::kS3);
  EXPECT_EQ(s3.tls, TlsMode::kPassthrough);
  EXPECT_EQ(s3.freshness, (Freshness{Freshness::Mode::kTtl, 24h}));
  EXPECT_EQ(s3.endpoint, (Endpoint{false, "rook-ceph-rgw.rook", 8080}));
  EXPECT_EQ(s3.credentials_secret, "team-s3-keys");
  EXPECT_TRUE(s3.write_through);
  EXPECT_FALSE(datasets.write_through);
}

TEST(Settings, ReadsInjectionRules) {
  const Settings settings = parsed(kFull);
  ASSERT_EQ(settings.injection.size(), 2U);
  EXPECT_EQ(settings.injection[0].name.get(), "default");
  EXPECT_EQ(settings.injection[0].selector.match_labels.at("nezha.io/inject"), "true");
  EXPECT_EQ(settings.injection[0].upstreams, (std::vector{UpstreamName("public-datasets"), UpstreamName("team-s3")}));
  EXPECT_EQ(settings.injection[0].mode, Mode::kCentral);
  using Operator = LabelSelector::Operator;
  EXPECT_EQ(settings.injection[1].selector.match_expressions,
            (std::vector<LabelSelector::Requirement>{{"app", Operator::kIn, {"jupyter", "vscode"}},
                                                     {"nezha.io/inject", Operator::kDoesNotExist, {}}}));
  EXPECT_EQ(settings.injection[1].mode, Mode::kSidecar);
}

TEST(Settings, ReadsTheProgramsSections) {
  const Settings settings = parsed(kFull);
  ASSERT_EQ(settings.delegation.size(), 2U);
  EXPECT_EQ(settings.delegation[0].namespaces, (std::vector<std::string>{"team-a", "team-b"}));
  EXPECT_EQ(settings.delegation[1].upstreams, (std::vector{UpstreamName("*")}));
  EXPECT_EQ(settings.cache.memory_bytes, 2ULL << 30);
  ASSERT_EQ(settings.cache.tiers.size(), 2U);
  EXPECT_EQ(settings.cache.tiers[0].medium, Medium::kPmem);
  EXPECT_EQ(settings.cache.tiers[1].path, "/cache/nezha");
  EXPECT_EQ(settings.cache.tiers[1].size_bytes, 1ULL << 40);
  EXPECT_EQ(settings.webhook.cache_address, IpAddress("10.96.12.34"));
  EXPECT_EQ(settings.webhook.cache_tls_address, IpAddress("10.96.12.35"));
  EXPECT_TRUE(settings.webhook.trust);
  ASSERT_TRUE(settings.webhook.sidecar);
  EXPECT_EQ(settings.webhook.sidecar->image, "registry.example.org/nezha-cache:1");
  EXPECT_EQ(settings.webhook.sidecar->volume, SidecarSettings::Volume::kEphemeral);
  EXPECT_EQ(settings.webhook.sidecar->storage_class, "fast");
  EXPECT_EQ(settings.webhook.sidecar->snapshot, "warm");
  EXPECT_EQ(settings.webhook.sidecar->medium, Medium::kPmem);
  EXPECT_EQ(settings.webhook.sidecar->size_bytes, 100ULL << 30);
  EXPECT_EQ(settings.webhook.sidecar->cpu_millicores, 1500U);
  EXPECT_EQ(settings.webhook.sidecar->memory_bytes, 2ULL << 30);
  EXPECT_EQ(settings.listen.http, (std::vector<ListenAddress>{{"0.0.0.0", 80}, {"::", 80}}));
  EXPECT_EQ(settings.listen.https, (std::vector<ListenAddress>{{"0.0.0.0", 443}}));
  EXPECT_EQ(settings.listen.relay, (std::vector<ListenAddress>{{"0.0.0.0", 444}}));
  EXPECT_EQ(settings.listen.admin, (ListenAddress{"127.0.0.1", 9180}));
  EXPECT_EQ(settings.resolver_servers, (std::vector<ListenAddress>{{"10.96.0.10", 5353}, {"10.96.0.11", 53}}));
  ASSERT_EQ(settings.tls.certificates.size(), 1U);
  EXPECT_EQ(settings.tls.certificates[0].key_path, "/tls/a.key");
  EXPECT_EQ(settings.tls.directory, "/etc/nezha-tls");
}

TEST(Settings, UpstreamsAloneAreEnough) {
  const Settings settings =
      parsed("upstreams: [{name: a, hosts: [a.example]}, {name: b, hosts: [b.example], protocol: s3}]");
  EXPECT_EQ(settings.upstreams[0].freshness.mode, Freshness::Mode::kHttp);
  EXPECT_EQ(settings.upstreams[1].freshness.mode, Freshness::Mode::kRevalidate);
  ASSERT_EQ(settings.injection.size(), 1U);
  EXPECT_EQ(settings.injection[0].name.get(), "default");
  EXPECT_EQ(settings.injection[0].selector.match_labels,
            (std::map<std::string, std::string>{{"nezha.io/inject", "true"}}));
  EXPECT_EQ(settings.injection[0].upstreams, (std::vector{UpstreamName("a"), UpstreamName("b")}));
  EXPECT_EQ(settings.injection[0].mode, Mode::kCentral);
}

TEST(Settings, TheLeastSizesAreEnough) {
  EXPECT_EQ(parsed("cache: {memory: 32Mi}").cache.memory_bytes, 32ULL << 20);
  EXPECT_EQ(parsed("cache: {memory: 1Mi, tiers: [{medium: memory, size: 16Mi}]}").cache.tiers[0].size_bytes,
            16ULL << 20);
}

TEST(Settings, AnEmptyInjectionListMeansNoRules) { EXPECT_TRUE(parsed("injection: []").injection.empty()); }

TEST(Settings, SectionsWithoutAValueAreAbsent) {
  const Settings settings = parsed("upstreams:\ncache:\nwebhook:\nlisten:\nresolver:\ntls:\ndelegation:\ninjection:\n");
  EXPECT_TRUE(settings.upstreams.empty());
  EXPECT_EQ(settings.injection.size(), 1U);
  EXPECT_FALSE(settings.listen.admin);
}

TEST(Settings, ReadsJsonToo) {
  EXPECT_EQ(parsed(R"({"upstreams": [{"name": "a", "hosts": ["a.example"]}]})").upstreams.size(), 1U);
}

TEST(Settings, EveryFreshnessForm) {
  using Mode = Freshness::Mode;
  const std::pair<std::string, Freshness> cases[] = {
      {"{mode: http}", {Mode::kHttp, 0s}},
      {"{mode: revalidate}", {Mode::kRevalidate, 0s}},
      {"{mode: immutable}", {Mode::kImmutable, 0s}},
      {"{mode: ttl, ttl: 24h}", {Mode::kTtl, 24h}},
      {"{ttl: 90}", {Mode::kTtl, 90s}},
      {"{ttl: 7d}", {Mode::kTtl, 168h}},
  };
  for (const auto& [text, wanted] : cases)
    EXPECT_EQ(parsed("upstreams: [{name: a, hosts: [a.example], freshness: " + text + "}]").upstreams[0].freshness,
              wanted)
        << text;
}

TEST(Settings, EveryEndpointForm) {
  const std::pair<std::string, Endpoint> cases[] = {
      {"http://minio.data", {false, "minio.data", 80}},
      {"https://minio.data/", {true, "minio.data", 443}},
      {"https://minio.data.svc.cluster.local:9000", {true, "minio.data.svc.cluster.local", 9000}},
      {"http://10.0.0.7:9000", {false, "10.0.0.7", 9000}},
      {"\"http://[fd00:0::7]:9000\"", {false, "fd00::7", 9000}},
      {"\"https://[fd00::7]\"", {true, "fd00::7", 443}},
  };
  for (const auto& [text, wanted] : cases)
    EXPECT_EQ(parsed("upstreams: [{name: a, hosts: [a.example], endpoint: " + text + "}]").upstreams[0].endpoint,
              wanted)
        << text;
}

TEST(Settings, SeveralEndpoints) {
  const Settings settings = parsed(
      "upstreams: [{name: a, hosts: [a.example], endpoint: ['http://rgw-0', 'http://rgw-1:8080']}, "
      "{name: b, hosts: [b.example], endpoint: ['https://one']}]\n"
      "listen: {admin: '127.0.0.1:1', adminTokenFile: /etc/token}\n");
  EXPECT_EQ(settings.upstreams[0].endpoint, (Endpoint{false, "rgw-0", 80}));
  ASSERT_TRUE(settings.upstreams[0].more_endpoints);
  EXPECT_EQ(*settings.upstreams[0].more_endpoints, (std::vector<Endpoint>{{false, "rgw-1", 8080}}));
  EXPECT_EQ(settings.upstreams[1].endpoint, (Endpoint{true, "one", 443}));
  EXPECT_FALSE(settings.upstreams[1].more_endpoints);
  EXPECT_EQ(settings.listen.admin_token_path, "/etc/token");
}

TEST(Settings, FindsUpstreamsByNameAndHost) {
  const Settings settings = parsed(kFull);
  EXPECT_EQ(settings.find_upstream(UpstreamName("team-s3")), &settings.upstreams[1]);
  EXPECT_EQ(settings.find_upstream(UpstreamName("nobody")), nullptr);
  EXPECT_EQ(settings.find_host(HostName("www.cs.toronto.edu")), &settings.upstreams[0]);
  EXPECT_EQ(settings.find_host(HostName("team-data.s3.eu-west-1.amazonaws.com")), &settings.upstreams[1]);
  EXPECT_EQ(settings.find_host(HostName("cs.toronto.edu")), nullptr);
}

}  // namespace
}  // namespace nezha::config
