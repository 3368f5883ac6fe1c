// Policy: everything an admission decision depends on besides the pod, as one immutable value in memory.
// The controller builds and publishes it; the request path only reads it. Admission makes no API call.
// Threads: Policy is immutable; PolicyStore may be used from any thread.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "nezha/base/named.h"
#include "nezha/config/settings.h"

namespace nezha::webhook {

// Hosts with tls: intercept whose certificates pods of a namespace can check.
struct TrustedHosts {
  std::set<HostName> central;  // as the central cache shows them
  std::set<HostName> sidecar;  // as sidecars in that namespace do
  friend bool operator==(const TrustedHosts&, const TrustedHosts&) = default;
};

struct Policy {
  std::shared_ptr<const config::Settings> settings = std::make_shared<const config::Settings>();  // never null
  std::map<Namespace, std::vector<config::InjectionRule>> delegated;  // rules of users' namespaces, already checked
  std::vector<config::AncestorRule> ancestor;
  // What central aliases point at, at most one per IP family. Empty: not known yet, pods are admitted unchanged.
  std::vector<IpAddress> cache_addresses;
  // The same for hosts with tls: intercept in pods that trust it, at most one per family. Empty: not known yet.
  std::vector<IpAddress> intercept_addresses;
  std::map<Namespace, TrustedHosts> trusted;  // namespaces that have what pods need
  bool trust_everywhere = false;              // every namespace has it, for every host: without a cluster
};

// Holds the Policy in force.
class PolicyStore {
 public:
  std::shared_ptr<const Policy> current() const {
    std::lock_guard lock(mutex_);
    return policy_;
  }
  void publish(std::shared_ptr<const Policy> policy) {
    std::lock_guard lock(mutex_);
    policy_ = std::move(policy);
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Policy> policy_ = std::make_shared<const Policy>();
};

// Which entry of the MutatingWebhookConfiguration sent the review; told apart by the URL path, because a review
// carries the pod's labels but not its namespace's.
enum class Entry {
  kPod,        // /mutate            objectSelector nezha.io/inject=true on the pod
  kNamespace,  // /mutate/namespace  namespaceSelector nezha.io/inject=true; pods with nezha.io/inject=false are not
               // sent
  kSelector,   // /mutate/selector   a rule's own selector, added by the controller
  kAncestor,   // /mutate/ancestor   namespaceSelector hostaliases-injector=enabled, objectSelector on label `app`
};

}  // namespace nezha::webhook
