// decide: should this pod change, how, and why not more. Entry + namespace + pod + policy -> Decision.
// Pure: same input, same answer; it reads neither clock nor network and changes nothing.
// Threads: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nezha/base/named.h"
#include "nezha/config/settings.h"
#include "nezha/k8s/pod.h"
#include "webhook/policy.h"

namespace nezha::webhook {

enum class Verdict {
  kInject,  // aliases and status as the Decision says
  // All others leave the pod untouched:
  kNotOptedIn,    // the pod's label does not ask for it
  kOptedOut,      // nezha.io/inject: "false"
  kMirrorPod,     // shows a static pod, cannot be changed
  kNoRule,        // no injection rule matches the pod
  kUnknownRule,   // nezha.io/config names no rule
  kCacheUnknown,  // the cache has no address yet
};
const char* to_string(Verdict verdict);  // "inject", "not-opted-in", ...: for metrics and explain

// Names that must resolve to one address, in the order they are written to /etc/hosts.
struct WantedAlias {
  IpAddress ip;
  std::vector<HostName> hosts;
};

// The container nezha-cache that the pod itself gets.
struct Sidecar {
  config::SidecarSettings settings;
  std::string configuration;  // what the container is given to read
  bool intercepts = false;    // it has certificates of hosts with tls: intercept
};

struct Decision {
  Verdict verdict = Verdict::kNotOptedIn;
  std::vector<std::string> rules;  // "default", "namespace/rule" for a namespace's own; the order of configuration
  config::Mode mode = config::Mode::kCentral;  // kSidecar: at least one host is served in the pod
  std::optional<Sidecar> sidecar;              // with kSidecar; absent when the pod has its container already
  std::vector<WantedAlias> aliases;            // one per address; hosts that the pod maps elsewhere itself are left out
  bool trust = false;                // a host is intercepted: the pod's containers must trust the cache's certificates
  bool untrusted = false;            // one would be, if the namespace had what pods need for that
  std::vector<std::string> reasons;  // everything that was not done, and why
  bool warn = false;                 // the reasons deserve the user's attention at kubectl apply
};

Decision decide(Entry entry, const Namespace& name_space, const k8s::Pod& pod, const Policy& policy);

// Whether the labels satisfy the selector. An empty selector matches everything, as in Kubernetes.
bool matches(const config::LabelSelector& selector, const std::map<std::string, std::string>& labels);

}  // namespace nezha::webhook
