// TlsKeeper: keeps certificates and the registration right. Each reconcile() reads both objects from the API, does
// what is due, and can be interrupted after any write: the next one, here or in another replica, goes on from there.
//
//   registration (read first) + Secret  -> rotation step -> Secret        (update with precondition, or create)
//   Secret + policy                     -> caBundle, selector entries     (update with precondition)
//   registered CAs                      -> which leaf to serve, readiness
//
// The registration is read before the Secret because a CA is registered only after it was stored: so nothing that a
// faster replica registered can be missing from the Secret read here, and be taken for drift.
// A selector entry that is no longer wanted is dropped only after a while, because another replica may know more.
// Threads: reconcile() by one thread at a time. All references are borrowed.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "nezha/base/clock.h"
#include "nezha/k8s/api_client.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"
#include "webhook/certs.h"
#include "webhook/controller/events.h"
#include "webhook/controller/readiness.h"
#include "webhook/controller/registration.h"
#include "webhook/controller/tls_state.h"
#include "webhook/policy.h"

namespace nezha::webhook {

struct TlsKeeperSettings {
  Namespace release;
  std::string registration = "nezha";     // name of the MutatingWebhookConfiguration
  std::string service = "nezha-webhook";  // what its entries call
  std::string secret = "nezha-webhook-tls";
  Lifetimes lifetimes;
  std::chrono::seconds removal_grace{10};  // how long an unwanted selector entry stays
};

// The names that the leaf must be valid for: the API server dials SERVICE.NAMESPACE.svc.
std::vector<std::string> service_dns_names(const std::string& service, const Namespace& name_space);

class TlsKeeper {
 public:
  TlsKeeper(TlsKeeperSettings settings, k8s::ApiClient& api, LiveCertificate& live, EventWriter& events,
            Readiness& readiness, const Clock& clock, obs::Metrics& metrics, obs::Log& log);

  // `policy` null: not all of the configuration is known yet, so selector entries are left as they are.
  // The failure is what stopped this pass, kRetryLater or worse; call again.
  [[nodiscard]] Result<> reconcile(const Policy* policy);

  // Whether something will be due that no change in the API announces, within seconds rather than months.
  bool soon_due() const { return soon_due_; }

 private:
  using Json = nlohmann::json;

  Result<std::optional<std::string>> read_registration();
  Result<TlsState> load_or_create(const std::set<std::string>& registered);
  Result<TlsState> fill(Json secret, bool exists, const std::string& why, const std::set<std::string>& registered);
  Result<TlsState> rotate(TlsState state, const std::set<std::string>& registered);
  Result<> store(const TlsState& state);
  Result<std::string> register_cas(const std::string& live, const TlsState& state, const Policy* policy);
  Result<std::string> update_registration(const std::string& live, const WantedRegistration& wanted);
  std::set<std::string> kept_entries(const std::set<std::string>& present, const WantedRegistration& wanted);
  void note_registered(const std::set<std::string>& registered);
  bool settled(const std::string& ca_pem) const;
  void serve(const TlsState& state, const std::set<std::string>& registered);
  void report(const std::optional<std::string>& registration);
  void report_registration(const std::optional<std::string>& registration);
  bool may_write_registration();

  const TlsKeeperSettings settings_;
  const Rotation rotation_;
  k8s::ApiClient& api_;
  LiveCertificate& live_;
  EventWriter& events_;
  Readiness& readiness_;
  const Clock& clock_;
  obs::Log& log_;
  obs::Gauge& expiry_days_;
  obs::Gauge& bundle_matches_;
  obs::Counter& steps_;

  std::string secret_json_;                           // as last read or written, for its resourceVersion
  std::optional<TlsState> last_state_;                // outlives a Secret that was deleted
  std::string served_ca_pem_;                         // CA of the leaf in force
  std::map<std::string, SteadyTime> registered_at_;   // CA -> since when we have seen it registered
  std::map<std::string, SteadyTime> unwanted_since_;  // selector entry -> since when nothing here wants it
  std::deque<SteadyTime> registration_writes_;        // of the last minute
  std::optional<std::string> rejected_selectors_;     // the server refused these: not tried again while the same
  std::optional<SteadyTime> replaced_at_;             // when an unreadable Secret was last replaced
  bool soon_due_ = false;
};

}  // namespace nezha::webhook
