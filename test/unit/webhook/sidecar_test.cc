// What a sidecar is given to read says of its upstreams what the cluster's configuration says; its size is bounded.
#include "webhook/sidecar.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "nezha/config/parse.h"

namespace nezha::webhook {
namespace {

using Volume = config::SidecarSettings::Volume;

config::Settings parsed(std::string_view yaml) {
  auto settings = config::parse_settings(yaml, "f.yaml");
  EXPECT_TRUE(settings) << settings.error().message;
  return std::move(settings).value();
}

config::Settings read_back(const config::SidecarSettings& sidecar, const config::Settings& settings,
                           const std::set<UpstreamName>& intercepted = {}) {
  std::vector<const config::Upstream*> upstreams;
  for (const auto& upstream : settings.upstreams) upstreams.push_back(&upstream);
  const auto text = sidecar_configuration(sidecar, upstreams, intercepted);
  EXPECT_TRUE(text);
  return parsed(text.value_or(""));
}

TEST(SidecarConfiguration, KeepsHostsFreshnessAndEndpoints) {
  const auto before = parsed(R"(
upstreams:
  - {name: a, hosts: [a.org, b.org]}
  - {name: b, protocol: s3, hosts: [c.org], freshness: {mode: immutable}, endpoint: "https://x.y"}
  - {name: c, hosts: [d.org], freshness: {ttl: 90s}, endpoint: ["http://[fd00::1]:81", "http://10.0.0.1"]}
  - {name: d, protocol: s3, hosts: [e.org]}
)");
  const auto after = read_back({}, before);
  ASSERT_EQ(after.upstreams.size(), before.upstreams.size());
  for (size_t i = 0; i < before.upstreams.size(); ++i) {
    const auto &was = before.upstreams[i], &is = after.upstreams[i];
    EXPECT_EQ(is.name, was.name);
    EXPECT_EQ(is.hosts, was.hosts);
    EXPECT_EQ(is.protocol, was.protocol);
    EXPECT_EQ(is.freshness, was.freshness);
    EXPECT_EQ(is.endpoint, was.endpoint);
    ASSERT_EQ(is.more_endpoints == nullptr, was.more_endpoints == nullptr);
    if (was.more_endpoints) {
      EXPECT_EQ(*is.more_endpoints, *was.more_endpoints);
    }
  }
}

TEST(SidecarConfiguration, LeavesOutWhatNeedsKeysOrCertificates) {
  const auto after = read_back({}, parsed(R"(
upstreams:
  - {name: a, protocol: s3, hosts: [a.org], tls: intercept, credentialsSecretRef: {name: k}, writeThrough: cache}
)"));
  ASSERT_EQ(after.upstreams.size(), 1u);
  EXPECT_EQ(after.upstreams[0].tls, config::TlsMode::kPassthrough);
  EXPECT_EQ(after.upstreams[0].credentials_secret, "");
  EXPECT_FALSE(after.upstreams[0].write_through);
}

TEST(SidecarConfiguration, InterceptsWhatItIsTold) {
  const auto after = read_back({}, parsed(R"(
upstreams:
  - {name: a, hosts: [a.org], tls: intercept}
  - {name: b, hosts: [b.org], tls: intercept}
)"),
                               {UpstreamName("a")});
  EXPECT_EQ(after.upstreams[0].tls, config::TlsMode::kIntercept);
  EXPECT_EQ(after.upstreams[1].tls, config::TlsMode::kPassthrough);
  EXPECT_EQ(after.tls.directory, "/etc/nezha-tls");
}

TEST(SidecarConfiguration, ListensInThePodAloneAndKeepsLessThanItsVolume) {
  config::SidecarSettings sidecar;
  const auto disk = read_back(sidecar, {});
  for (const auto* addresses : {&disk.listen.http, &disk.listen.https}) {
    ASSERT_EQ(addresses->size(), 1u);
    EXPECT_EQ(addresses->front().host, "127.0.0.1");
  }
  ASSERT_TRUE(disk.listen.admin);
  EXPECT_EQ(disk.listen.admin->host, "127.0.0.1");
  ASSERT_EQ(disk.cache.tiers.size(), 1u);
  EXPECT_EQ(disk.cache.tiers[0].medium, config::Medium::kNvme);
  EXPECT_LT(disk.cache.tiers[0].size_bytes, sidecar.size_bytes);
  sidecar.volume = Volume::kMemory;
  const auto memory = read_back(sidecar, {});
  EXPECT_EQ(memory.cache.tiers[0].medium, config::Medium::kMemory);
  const auto container = nlohmann::json::parse(sidecar_container({sidecar, ""}));
  const auto limit = std::stoull(container["resources"]["limits"]["memory"].get<std::string>());
  EXPECT_GE(limit, memory.cache.tiers[0].size_bytes + memory.cache.memory_bytes);
}

TEST(SidecarConfiguration, IsRefusedWhereNoVariableWouldHoldIt) {
  config::Upstream upstream;
  upstream.name = UpstreamName("a");
  for (int i = 0; i < 1000; ++i) upstream.hosts.emplace_back(std::to_string(i) + "." + std::string(120, 'a') + ".org");
  EXPECT_FALSE(sidecar_configuration({}, {&upstream}, {}));
}

TEST(SidecarContainer, CanNeverBreakThePodsClassOfService) {
  config::SidecarSettings sidecar;
  sidecar.cpu_millicores = 1500;
  const auto resources = nlohmann::json::parse(sidecar_container({sidecar, ""}))["resources"];
  for (const char* name : {"cpu", "memory"}) EXPECT_EQ(resources["requests"][name], resources["limits"][name]);
  EXPECT_EQ(resources["limits"]["cpu"], "1500m");
  EXPECT_EQ(resources["requests"]["ephemeral-storage"], std::to_string(sidecar.size_bytes));
  EXPECT_FALSE(resources["limits"].contains("ephemeral-storage"));
}

}  // namespace
}  // namespace nezha::webhook
