// Random pods and policies: f(f(x)) = f(x); the result minus ours is the input; the patch applies by the RFC.
// RapidCheck prints the seed of a failure; RC_PARAMS="reproduce=..." runs it again.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "test/support/extension.h"
#include "test/support/policies.h"
#include "test/support/rfc6902.h"
#include "webhook/admit.h"

namespace nezha::test {
namespace {

using Json = nlohmann::json;

// Few values each, so that they meet.
const std::vector<std::string> kIps{"10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "FD00:0:0::1", "not-an-ip", ""};
const std::vector<std::string> kHosts{"a.org", "b.org", "c.org", "A.org", "d.e.org", ""};
const std::vector<std::string> kKeys{"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes",
                                     "nezha.io/status",
                                     "nezha.io/mode",
                                     "nezha.io/config",
                                     "a~b/c",
                                     "",
                                     "quote\"",
                                     "x"};
const std::vector<std::string> kValues{"",
                                       "sidecar",
                                       "r1",
                                       "r2",
                                       "{}",
                                       "\u00e9\n",
                                       R"({"rule":"r1","mode":"central","hosts":["a.org"],"reasons":["old"]})"};

std::string pick(const std::vector<std::string>& from) { return *rc::gen::elementOf(from); }

// The value, null, or nothing at all.
void put(Json& object, const char* key, Json value) {
  const int way = *rc::gen::inRange(0, 6);
  if (way == 0)
    object[key] = nullptr;
  else if (way > 1)
    object[key] = std::move(value);
}

Json random_aliases() {
  Json list = Json::array();
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) {
    Json names = Json::array();
    const int hosts = *rc::gen::inRange(0, 4);
    for (int n = 0; n < hosts; ++n) names.push_back(pick(kHosts));
    Json item{{"ip", pick(kIps)}};
    put(item, "hostnames", names);
    list.push_back(item);
  }
  return list;
}

Json random_init_containers() {
  Json list = Json::array();
  for (const char* name : {"istio-proxy", "prepare", "nezha-cache"})
    if (*rc::gen::inRange(0, 4) == 0) list.push_back({{"name", name}, {"restartPolicy", "Always"}});
  return list;
}

Json random_variables() {
  Json list = Json::array();
  const int count = *rc::gen::inRange(0, 3);
  for (int i = 0; i < count; ++i) {
    Json variable{{"name", pick({"SSL_CERT_FILE", "JAVA_TOOL_OPTIONS", "JAVA_TOOL_OPTIONS", "OTHER"})}};
    const int way = *rc::gen::inRange(0, 3);
    if (way == 0) variable["valueFrom"] = {{"fieldRef", {{"fieldPath", "metadata.name"}}}};
    if (way == 1) variable["value"] = pick({"-Xmx1g", "", "/etc/ssl/cert.pem", "-Djavax.net.ssl.trustStore=/x"});
    list.push_back(variable);
  }
  return list;
}

Json random_mounts() {
  Json list = Json::array();
  if (*rc::gen::inRange(0, 3) == 0)
    list.push_back(
        {{"name", "data"}, {"mountPath", pick({"/data", "/etc/ssl", "/etc/ssl/certs/", "/etc/nezha-trust/x"})}});
  return list;
}

Json random_pod() {
  Json labels{{"nezha.io/inject", *rc::gen::element("true", "true", "true", "false")},
              {"team", pick({"x", "y"})},
              {"app", pick({"old", "new"})}};
  Json annotations = Json::object();
  const int count = *rc::gen::inRange(0, 4);
  for (int i = 0; i < count; ++i) annotations[pick(kKeys)] = pick(kValues);
  Json metadata{{"labels", labels}};
  put(metadata, "annotations", annotations);
  Json container{{"name", "c"}, {"n", *rc::gen::arbitrary<int64_t>()}};
  put(container, "env", random_variables());
  put(container, "volumeMounts", random_mounts());
  Json spec{{"containers", std::vector<Json>{container}}};
  put(spec, "initContainers", random_init_containers());
  const Json volume{{"name", pick({"data", "data", "data", "nezha-cache", "nezha-trust"})}};
  put(spec, "volumes", std::vector<Json>{volume});
  const Json sysctl{{"name", pick({"x", "net.ipv4.ip_unprivileged_port_start"})}, {"value", pick({"0", "1024"})}};
  Json context = Json::object();
  put(context, "sysctls", std::vector<Json>{sysctl});
  put(spec, "securityContext", context);
  put(spec, "hostAliases", random_aliases());
  Json pod{{"kind", "Pod"}, {"spec", spec}};
  put(pod, "metadata", metadata);
  return pod;
}

// Upstreams as a configuration may have them: each has hosts, and no host is in two.
void separate(std::vector<config::Upstream>& upstreams) {
  std::set<HostName> taken;
  for (auto& upstream : upstreams) {
    std::erase_if(upstream.hosts, [&](const HostName& host) { return !taken.insert(host).second; });
    if (upstream.hosts.empty()) upstream.hosts.emplace_back(upstream.name.get() + ".org");
  }
}

// Rules may share an upstream.
void allow_sidecars(webhook::Policy& policy) {
  auto settings = std::make_shared<config::Settings>(*policy.settings);
  separate(settings->upstreams);
  for (auto& rule : settings->injection)
    if (*rc::gen::arbitrary<bool>()) rule.upstreams.push_back(settings->upstreams.front().name);
  using Volume = config::SidecarSettings::Volume;
  settings->webhook.sidecar.emplace().image = "example.org/nezha-cache:1";
  settings->webhook.sidecar->volume = *rc::gen::element(Volume::kEmptyDir, Volume::kMemory);
  policy.settings = std::move(settings);
}

void allow_interception(webhook::Policy& policy) {
  auto settings = std::make_shared<config::Settings>(*policy.settings);
  separate(settings->upstreams);
  for (auto& upstream : settings->upstreams)
    if (*rc::gen::arbitrary<bool>()) upstream.tls = config::TlsMode::kIntercept;
  policy.settings = std::move(settings);
  if (*rc::gen::arbitrary<bool>()) policy.intercept_addresses = {IpAddress("10.0.0.3")};
  policy.trust_everywhere = *rc::gen::arbitrary<bool>();
  auto& trusted = policy.trusted[Namespace("team")];
  for (const auto& host : kHosts)
    if (*rc::gen::inRange(0, 3) > 0) trusted.central.insert(HostName(host));
  trusted.sidecar = trusted.central;
}

webhook::Policy random_policy() {
  const std::vector<std::string> names{"a.org", "b.org", "c.org", "d.e.org", "f.org"};
  std::vector<RuleSpec> rules;
  for (const char* name : {"r1", "r2", "r3"}) {
    std::vector<std::string> hosts;
    for (const auto& host : names)
      if (*rc::gen::arbitrary<bool>()) hosts.push_back(host);
    RuleSpec rule{name, hosts, {}, *rc::gen::element(config::Mode::kCentral, config::Mode::kSidecar)};
    if (*rc::gen::arbitrary<bool>()) rule.labels["team"] = "x";
    rules.push_back(rule);
  }
  const std::vector<std::vector<std::string>> addresses{{"10.0.0.1"}, {"10.0.0.1", "fd00::1"}, {}};
  auto policy = make_policy(rules, *rc::gen::elementOf(addresses));
  if (*rc::gen::arbitrary<bool>()) allow_sidecars(policy);
  if (*rc::gen::arbitrary<bool>()) allow_interception(policy);
  policy.ancestor = {{RuleName("old"), "x", "old", {{IpAddress("10.0.0.2"), {HostName("a.org"), HostName("f.org")}}}}};
  return policy;
}

webhook::Entry random_entry() {
  using webhook::Entry;
  return *rc::gen::element(Entry::kPod, Entry::kNamespace, Entry::kSelector, Entry::kAncestor);
}

Json run(webhook::Entry entry, const Json& pod, const webhook::Policy& policy) {
  const auto change = webhook::change_pod(entry, Namespace("team"), pod, policy);
  RC_ASSERT(!change.failed);
  const Json patch = Json::parse(k8s::write_patch(change.patch));
  const Json result = apply_rfc6902(pod, patch);
  RC_ASSERT(result == pod.patch(patch));
  return result;
}

RC_GTEST_PROP(Property, SecondRunIsEmptyAndNothingOfTheUserIsLost, ()) {
  const Json pod = random_pod();
  const auto policy = random_policy();
  const auto entry = random_entry();
  const Json once = run(entry, pod, policy);
  RC_ASSERT(run(entry, once, policy).dump() == once.dump());
  const auto extension = is_extension(pod, once);
  if (!extension) RC_LOG() << extension.message() << "\nof " << pod.dump();
  RC_ASSERT(static_cast<bool>(extension));
}

RC_GTEST_PROP(Property, EntriesInAnyOrderSettleAfterOneRound, ()) {
  const auto policy = random_policy();
  const auto order = *rc::gen::container<std::vector<webhook::Entry>>(3, rc::gen::exec(random_entry));
  Json pod = random_pod();
  for (const auto entry : order) pod = run(entry, pod, policy);
  for (const auto entry : order) RC_ASSERT(run(entry, pod, policy).dump() == pod.dump());
}

RC_GTEST_PROP(Property, AHostNeverGetsAnAddressBesideThePodsOwn, ()) {
  const Json pod = random_pod();
  const auto policy = random_policy();
  const Json after = run(random_entry(), pod, policy);
  std::map<std::string, std::set<std::string>> before_ips;
  const auto each = [](const Json& from, const auto& visit) {
    const Json aliases = from["spec"].value("hostAliases", Json());
    for (const auto& item : aliases.is_array() ? aliases : Json::array())
      for (const auto& name :
           item.contains("hostnames") && item["hostnames"].is_array() ? item["hostnames"] : Json::array())
        visit(item["ip"].get<std::string>(), name.get<std::string>());
  };
  each(pod, [&](const std::string& ip, const std::string& host) { before_ips[host].insert(ip); });
  const std::set<std::string> foreign{"not-an-ip", ""};
  each(after, [&](const std::string& ip, const std::string& host) {
    if (!before_ips.contains(host) || before_ips[host].contains(ip)) return;
    for (const auto& own : before_ips[host]) RC_ASSERT(!foreign.contains(own));
  });
}

}  // namespace
}  // namespace nezha::test
