// TrustKeeper: keeps what interception needs: CAs, the caches' certificates, and in each namespace what its pods trust.
// As TlsKeeper does, each reconcile() reads, does what is due, and can be interrupted after any write; every write has
// a precondition, so that of several replicas one wins and the others read again.
//
//   hosts with tls: intercept   -> CA Secret (one CA for the central cache, one per namespace with sidecars)
//   CA of the central cache     -> Secret with its certificates
//   for each namespace: its CA  -> Secret nezha-sidecar-tls, then ConfigMap nezha-trust
//
// The ConfigMap is written last and names the hosts that it is good for: admission relies on what is read back of it.
// All that is made in users' namespaces belongs to the MutatingWebhookConfiguration (owner reference), so Kubernetes
// removes it with the release; without that registration nothing is made.
// Without hosts to intercept the caches' certificates are removed, and after `overlap` the bundles and CAs: pods of
// before may run, or wait to be scheduled, that mount a bundle and would not trust other CAs. A namespace where
// something fails is logged, counted and tried again with growing delays; it stops no other. Threads: reconcile() by
// one thread at a time. All references are borrowed.
#pragma once

#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nezha/base/clock.h"
#include "nezha/k8s/api_client.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"
#include "webhook/controller/authority.h"
#include "webhook/controller/trust_bundle.h"
#include "webhook/policy.h"

namespace nezha::webhook {

struct TrustKeeperSettings {
  bool enabled = true;
  Namespace release;
  std::string registration = "nezha";                             // name of the MutatingWebhookConfiguration
  std::string ca_secret = "nezha-ca";                             // in the release's namespace
  std::string leaf_secret = "nezha-cache-tls";                    // there too
  std::string roots_file = "/etc/ssl/certs/ca-certificates.crt";  // public roots
  TrustTimes times;
  std::chrono::seconds removal_grace{10};  // how long nothing must be intercepted before things are removed
  std::chrono::seconds forget_grace{600};  // how long a namespace must be gone before its CA is
  std::chrono::seconds recheck{60};        // between looks at Secrets that are not watched
  size_t rewrites_per_minute_max = 6;      // of one object: replicas may disagree in a rollout
  std::chrono::seconds retry_first{1};     // after a failure in a namespace, doubling
  std::chrono::seconds retry_max{600};
};

// What the watches and the request path know.
struct TrustView {
  const Policy* policy = nullptr;  // null: not all of the configuration is known
  std::string extra_roots_pem;     // the admin's, beside the public ones
  std::set<Namespace> labelled;    // namespaces that opt in
  std::map<Namespace, TrustRecord> present;
};

// Hosts that pods may be given the intercepting address for, sorted; at most limits::kInterceptedHostsMax.
std::vector<std::string> intercepted_hosts(const config::Settings& settings);

class TrustKeeper {
 public:
  TrustKeeper(TrustKeeperSettings settings, k8s::ApiClient& api, const Clock& clock, obs::Metrics& metrics,
              obs::Log& log);

  // A pod of that namespace could have used it. Remembered up to limits::kNotedNamespacesMax namespaces.
  void note(const Namespace& name_space);

  // The failure is what stopped the whole pass, kRetryLater or worse; call again.
  [[nodiscard]] Result<> reconcile(const TrustView& view);

  // Whether something will be due soon that no change in the API announces.
  bool soon_due() const { return soon_due_; }

 private:
  using Json = nlohmann::json;
  struct Attempt {
    SteadyTime next;
    std::chrono::seconds delay;
    std::string told;
  };
  // What the ConfigMap made of a bundle comes to: making one takes a while.
  struct Digest {
    std::string stamp;  // of the bundle
    std::string text;
  };
  struct Checked {
    std::string stamp;
    SteadyTime at;
  };

  Result<> load_roots();
  Result<bool> read_owner();
  std::set<Namespace> wanted_namespaces(const TrustView& view);
  Result<Authorities> settle_authorities(const std::vector<std::string>& hosts, const std::set<Namespace>& sidecars);
  Result<> settle_each(const std::vector<std::string>& hosts, const std::set<std::string>& wanted,
                       Authorities& authorities);
  bool forgotten(const std::string& authority, bool wanted);
  Result<> settle_leaf_secret(const Namespace& name_space, const std::string& name, const pki::Identity& ca,
                              const std::vector<std::string>& hosts);
  Result<> settle_namespace(const Namespace& name_space, const Authorities& authorities,
                            const std::vector<std::string>& hosts, const TrustView& view);
  Result<> settle_bundle(const Namespace& name_space, const TrustBundle& bundle, const TrustRecord* present);
  Result<> write_bundle(const Namespace& name_space, const TrustBundle& bundle, const std::string& digest);
  Result<std::string> digest_of(const Namespace& name_space, const TrustBundle& bundle);
  void settle_namespaces(const std::set<Namespace>& wanted, const Authorities& authorities,
                         const std::vector<std::string>& hosts, const TrustView& view);
  void failed(const Namespace& name_space, const Error& error);
  Result<> note_rewrite(const std::string& object);
  void wrote();
  bool is_ours(const Json& object) const;
  Json metadata_of(const Namespace& name_space, const std::string& name) const;
  Result<> retire(const TrustView& view);
  Result<> empty_secret(const std::string& name);
  Result<bool> overlap_is_over();
  Result<> remove_from(const Namespace& name_space, const TrustRecord* record);

  const TrustKeeperSettings settings_;
  k8s::ApiClient& api_;
  const Clock& clock_;
  obs::Log& log_;
  obs::Counter& writes_;
  obs::Counter& failures_;
  obs::Gauge& name_spaces_;

  std::vector<std::string> roots_;  // PEM, read once: they come with the image
  std::string owner_uid_;           // of the registration
  std::set<Namespace> noted_;
  std::map<Namespace, Attempt> failing_;
  std::map<std::string, Checked> checked_;                  // NAMESPACE/SECRET -> what it was found to be
  std::map<std::string, std::deque<SteadyTime>> rewrites_;  // NAMESPACE/NAME -> those of the last minute
  std::map<Namespace, Digest> digests_;
  std::map<std::string, SteadyTime> unwanted_since_;  // authority -> since when
  std::optional<SteadyTime> idle_since_;              // nothing to intercept since
  bool retired_ = false;                              // and nothing is left of it
  bool soon_due_ = false;
  size_t written_ = 0;  // in this pass
};

}  // namespace nezha::webhook
