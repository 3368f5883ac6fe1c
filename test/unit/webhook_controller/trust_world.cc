#include "test/unit/webhook_controller/trust_world.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "nezha/base/text.h"
#include "nezha/pki/certificates.h"
#include "test/unit/webhook_controller/registration_fixture.h"
#include "webhook/controller/leaf_set.h"

namespace nezha::test {
namespace {

using Json = nlohmann::json;

std::optional<Json> object_at(const FakeApiServer& server, const std::string& path) {
  const auto text = server.get(path);
  return text ? std::optional(Json::parse(*text)) : std::nullopt;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  for (const auto line : split(text, '\n'))
    if (!line.empty()) out.emplace_back(line);
  return out;
}

webhook::LeafSet leaves_at(const FakeApiServer& server, const std::string& path) {
  const auto secret = object_at(server, path);
  return secret ? webhook::read_leaf_set(webhook::read_secret_data(*secret)) : webhook::LeafSet{};
}

bool holds(const std::string& leaf, const std::vector<std::string>& roots, const std::string& host, WallTime at) {
  for (const auto& root : roots)
    if (pki::check_chain(leaf, root, host, at)) return true;
  return false;
}

}  // namespace

std::string bundle_path(const std::string& name_space) {
  return "/api/v1/namespaces/" + name_space + "/configmaps/nezha-trust";
}
std::string sidecar_secret_path(const std::string& name_space) {
  return "/api/v1/namespaces/" + name_space + "/secrets/nezha-sidecar-tls";
}

webhook::TrustTimes short_trust_times() {
  using std::chrono::seconds;
  return {
      .ca = seconds(1000), .leaf = seconds(200), .renew = seconds(60), .overlap = seconds(200), .backdate = seconds(5)};
}

TrustWorld::TrustWorld() {
  server.put(kRegistrationPath, kRegistration);
  server.put(kCaSecret, R"({"type":"Opaque","metadata":{"labels":{"helm":"yes"}}})");
  server.put(kLeafSecret, R"({"type":"Opaque"})");
  // The public roots of this world.
  std::ofstream(directory_.path() + "/roots.pem")
      << pki::make_ca("public", {clock.wall(), clock.wall() + std::chrono::hours(100'000)}).value().certificate_pem;
  intercept({"a.org", "b.org"});
}

void TrustWorld::intercept(const std::vector<std::string>& hosts, bool sidecars) {
  config::Settings settings;
  settings.upstreams.resize(hosts.empty() ? 0 : 1);
  for (auto& upstream : settings.upstreams) {
    upstream.name = UpstreamName("secure");
    upstream.tls = config::TlsMode::kIntercept;
    for (const auto& host : hosts) upstream.hosts.emplace_back(host);
  }
  if (sidecars) settings.webhook.sidecar.emplace().image = "example.org/nezha-cache:1";
  auto policy = std::make_shared<webhook::Policy>();
  policy->settings = std::make_shared<const config::Settings>(std::move(settings));
  policy_ = std::move(policy);
}

webhook::TrustView TrustWorld::view() const {
  webhook::TrustView out;
  out.policy = policy_.get();
  out.labelled = labelled_;
  for (const auto& path : server.paths_under("/api/v1/namespaces/")) {
    const auto json = server.get(path);
    if (!json || !path.ends_with("/configmaps/nezha-trust")) continue;
    const Json object = Json::parse(*json);
    const auto& metadata = object["metadata"];
    if (metadata.value("labels", Json::object()).value("nezha.io/trust", "") != "true") continue;
    const Namespace name_space(metadata["namespace"].get<std::string>());
    auto record = webhook::read_trust(
        {{name_space, "nezha-trust"}, metadata["uid"], metadata["resourceVersion"], webhook::reduced_trust(*json)});
    if (record.owner_name == "nezha") out.present[name_space] = std::move(record);
  }
  return out;
}

webhook::TrustKeeperSettings TrustWorld::settings() const {
  webhook::TrustKeeperSettings out;
  out.release = Namespace("nezha-system");
  out.times = short_trust_times();
  out.roots_file = directory_.path() + "/roots.pem";
  return out;
}

std::string TrustWorld::broken() const {
  const auto central = leaves_at(server, kLeafSecret);
  for (const auto& [name_space, record] : view().present) {
    const Json bundle = *object_at(server, bundle_path(name_space.get()));
    const auto roots = pki::split_bundle(bundle["data"]["ca-bundle.crt"].get<std::string>());
    for (const auto& [host, leaf] : central.leaves)
      if (record.trusted.central.contains(HostName(host)) && !holds(leaf, roots, host, clock.wall()))
        return "central leaf of " + host + " in " + name_space.get();
    const auto sidecar = leaves_at(server, sidecar_secret_path(name_space.get()));
    for (const auto& [host, leaf] : sidecar.leaves)
      if (record.trusted.sidecar.contains(HostName(host)) && !holds(leaf, roots, host, clock.wall()))
        return "sidecar's leaf of " + host + " in " + name_space.get();
  }
  return "";
}

std::vector<std::string> TrustWorld::bundle_hosts(const std::string& name_space) const {
  const auto bundle = object_at(server, bundle_path(name_space));
  return bundle ? lines_of((*bundle)["data"]["hosts"].get<std::string>()) : std::vector<std::string>();
}

std::vector<std::string> TrustWorld::leaf_hosts(const std::string& secret_path) const {
  std::vector<std::string> out;
  for (const auto& [host, leaf] : leaves_at(server, secret_path).leaves) out.push_back(host);
  return out;
}

TrustReplica::TrustReplica(TrustWorld& world)
    : world_(world), api_(world.server.address()), keeper_(world.settings(), api_, world.clock, *metrics_, *log_) {}

std::string TrustReplica::reconcile() {
  const auto done = keeper_.reconcile(world_.view());
  return done ? "" : done.error().message;
}

void TrustReplica::settle(int passes) {
  for (int i = 0; i < passes; ++i) reconcile();
}

}  // namespace nezha::test
