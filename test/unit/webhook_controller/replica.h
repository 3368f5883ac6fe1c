// One replica's TlsKeeper with everything it borrows, against the fake API server, driven by hand.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "test/support/fake_api_server.h"
#include "test/support/manual_clock.h"
#include "webhook/controller/tls_keeper.h"

namespace nezha::test {

// Lives in seconds, so that a test walks through years in a few hundred steps.
inline webhook::Lifetimes short_lifetimes() {
  using std::chrono::seconds;
  return {
      .ca = seconds(400), .leaf = seconds(240), .settle = seconds(20), .overlap = seconds(40), .backdate = seconds(5)};
}

class Replica {
 public:
  Replica(const FakeApiServer& server, const Clock& clock);

  // One pass with this policy (null: configuration not known yet). The error's message, empty when it went through.
  std::string reconcile(const webhook::Policy* policy);
  std::string reconcile() { return reconcile(&no_policy_); }

  std::string leaf() const;  // PEM of the certificate in force, empty when there is none
  bool ready() const { return readiness_.ready(); }
  std::string readiness() const { return readiness_.text(); }
  std::string metrics() const { return metrics_->expose(); }
  bool soon_due() const { return keeper_.soon_due(); }
  void flush_events() { events_.flush(); }

 private:
  const webhook::Policy no_policy_;
  std::unique_ptr<obs::Log> log_ = obs::make_null_log();
  std::unique_ptr<obs::Metrics> metrics_ = obs::make_metrics();
  k8s::ApiClient api_;
  webhook::LiveCertificate live_;
  webhook::Readiness readiness_;
  webhook::EventWriter events_;
  webhook::TlsKeeper keeper_;
};

// The CAs that every entry of the registration stored in the server trusts.
std::set<std::string> stored_cas(const FakeApiServer& server);

// The leaf holds for the Service's name at `now` under one of these CAs.
bool trusted(const std::string& leaf_pem, const std::set<std::string>& cas, WallTime now);

// PUT, POST and PATCH requests so far.
size_t writes(const FakeApiServer& server);

// A policy with one admin rule whose selector is the label app=APP.
std::shared_ptr<const webhook::Policy> policy_for_app(const std::string& app);

}  // namespace nezha::test
