#include "test/unit/webhook_controller/replica.h"

#include <nlohmann/json.hpp>

#include "nezha/pki/certificates.h"
#include "test/unit/webhook_controller/registration_fixture.h"

namespace nezha::test {
namespace {

webhook::TlsKeeperSettings settings() {
  webhook::TlsKeeperSettings out;
  out.release = Namespace("nezha-system");
  out.lifetimes = short_lifetimes();
  return out;
}

}  // namespace

Replica::Replica(const FakeApiServer& server, const Clock& clock)
    : api_(server.address()),
      events_(api_, clock, *log_),
      keeper_(settings(), api_, live_, events_, readiness_, clock, *metrics_, *log_) {}

std::string Replica::reconcile(const webhook::Policy* policy) {
  const auto done = keeper_.reconcile(policy);
  return done ? "" : done.error().message;
}

std::string Replica::leaf() const {
  const auto pair = live_.current();
  return pair ? pair->certificate_pem : "";
}

std::set<std::string> stored_cas(const FakeApiServer& server) {
  const auto stored = server.get(kRegistrationPath);
  return stored ? webhook::registered_cas(nlohmann::json::parse(*stored)) : std::set<std::string>();
}

bool trusted(const std::string& leaf_pem, const std::set<std::string>& cas, WallTime now) {
  for (const std::string& ca : cas) {
    if (pki::check_chain(leaf_pem, ca, "nezha-webhook.nezha-system.svc", now)) return true;
  }
  return false;
}

size_t writes(const FakeApiServer& server) {
  size_t out = 0;
  for (const SeenRequest& request : server.requests()) out += request.method == "GET" ? 0 : 1;
  return out;
}

std::shared_ptr<const webhook::Policy> policy_for_app(const std::string& app) {
  config::InjectionRule rule;
  rule.name = RuleName("r");
  rule.selector.match_labels["app"] = app;
  config::Settings settings;
  settings.injection.push_back(rule);
  auto policy = std::make_shared<webhook::Policy>();
  policy->settings = std::make_shared<const config::Settings>(std::move(settings));
  return policy;
}

}  // namespace nezha::test
