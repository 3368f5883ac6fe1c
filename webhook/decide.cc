#include "webhook/decide.h"

#include <algorithm>
#include <set>

#include "nezha/base/text.h"
#include "webhook/alias_plan.h"
#include "webhook/annotations.h"
#include "webhook/sentence.h"
#include "webhook/sidecar.h"
#include "webhook/trust.h"

namespace nezha::webhook {
namespace {

// One rule that applies to the pod: ours or the ancestor's, exactly one of the pointers is set.
struct Chosen {
  std::string name;
  const config::InjectionRule* rule = nullptr;
  const config::AncestorRule* ancestor = nullptr;
};

constexpr const char* kLoopback = "127.0.0.1";

// Names are joined by commas in the status.
std::string plain_name(std::string name) {
  for (char& c : name)
    if (c == ',') c = '_';
  return name;
}

class Decider {
 public:
  Decider(Entry entry, const Namespace& name_space, const k8s::Pod& pod, const Policy& policy)
      : entry_(entry), name_space_(name_space), pod_(pod), policy_(policy), labels_(pod.labels) {
    // The namespace's label stands for the pod's own.
    if (entry == Entry::kNamespace) labels_[kInjectLabel] = "true";
  }

  Decision decide() {
    if (!consider()) return std::move(decision_);
    look_at_pod();
    choose();
    if (chosen_.empty()) return std::move(decision_);
    plan();
    return std::move(decision_);
  }

 private:
  bool opted_in_by_label() const {
    const auto inject = labels_.find(kInjectLabel);
    return inject != labels_.end() && inject->second == "true";
  }

  bool stop(Verdict verdict, std::string reason, bool warn = false) {
    decision_.verdict = verdict;
    decision_.reasons.push_back(std::move(reason));
    decision_.warn = warn;
    return false;
  }

  // Whether the pod is ours to change at all.
  bool consider() {
    if (pod_.annotation(kMirrorAnnotation))
      return stop(Verdict::kMirrorPod, "the pod mirrors a static pod of the kubelet and cannot be changed");
    const std::string* inject = pod_.label(kInjectLabel);
    if (inject && *inject == "false")
      return stop(Verdict::kOptedOut, std::string("the label ") + kInjectLabel + " is \"false\"");
    if (entry_ == Entry::kPod && !opted_in_by_label()) {
      const std::string label = kInjectLabel;
      return stop(Verdict::kNotOptedIn, inject ? "the label " + label + " is " + quoted(*inject) + ", not \"true\""
                                               : "the pod has no label " + label + ": \"true\"");
    }
    return true;
  }

  // Rules in the order of configuration: the cluster's, the namespace's own, the ancestor's.
  void choose() {
    const std::string* picked = pod_.annotation(kConfigAnnotation);
    if (picked && (entry_ != Entry::kAncestor || opted_in_by_label())) return pick(*picked);
    if (entry_ != Entry::kAncestor || opted_in_by_label()) add_matching();
    if (entry_ == Entry::kAncestor || opted_in_by_label()) add_ancestor();
    if (!chosen_.empty()) return;
    stop(Verdict::kNoRule, "no injection rule matches the labels of the pod; known rules: " + rule_names(),
         entry_ == Entry::kPod);
  }

  void pick(const std::string& name) {
    for (const auto& candidate : own_rules())
      if (candidate.rule->name.get() == name) return chosen_.push_back(candidate);
    for (const auto& rule : policy_.settings->injection)
      if (rule.name.get() == name) return chosen_.push_back({rule.name.get(), &rule, nullptr});
    stop(Verdict::kUnknownRule,
         std::string("the annotation ") + kConfigAnnotation + " names " + quoted(name) +
             ", which is no injection rule; known rules: " + rule_names(),
         true);
  }

  std::string rule_names() const {
    std::vector<std::string> names;
    for (const auto& rule : policy_.settings->injection) names.push_back(rule.name.get());
    for (const auto& candidate : own_rules()) names.push_back(candidate.name);
    for (const auto& rule : policy_.ancestor) names.push_back(rule.name.get());
    return names.empty() ? "none" : listed(names);
  }

  void add_matching() {
    std::vector<Chosen> candidates;
    for (const auto& rule : policy_.settings->injection) candidates.push_back({rule.name.get(), &rule, nullptr});
    for (auto& candidate : own_rules()) candidates.push_back(std::move(candidate));
    for (auto& candidate : candidates) {
      const auto& selector = candidate.rule->selector;
      // A rule without a selector serves pods that opted in; it does not opt in every pod of the cluster.
      const bool selects_all = selector.match_labels.empty() && selector.match_expressions.empty();
      if (selects_all ? opted_in_by_label() : matches(selector, labels_)) chosen_.push_back(std::move(candidate));
    }
  }

  void add_ancestor() {
    const std::string* app = pod_.label(kAncestorPodLabel);
    if (!app) return;
    for (const auto& rule : policy_.ancestor)
      if (rule.label == *app) chosen_.push_back({rule.name.get(), nullptr, &rule});
  }

  std::vector<Chosen> own_rules() const {
    std::vector<Chosen> rules;
    const auto own = policy_.delegated.find(name_space_);
    if (own == policy_.delegated.end()) return rules;
    for (const auto& rule : own->second) rules.push_back({name_space_.get() + '/' + rule.name.get(), &rule, nullptr});
    return rules;
  }

  // What the pod has of the cache already, and whether it can hold one.
  void look_at_pod() {
    in_pod_ = hosts_of_sidecar(pod_);
    if (!in_pod_) no_sidecar_ = why_no_sidecar(pod_, policy_);
    no_trust_ = why_no_trust(pod_);
    conflicts_ = plan_trust(pod_).reasons;
    if (no_trust_.empty() && !conflicts_.empty()) no_trust_ = conflicts_.front();
    for (const auto& alias : pod_.host_aliases) {
      const IpAddress ip(canonical_ip(alias.ip).value_or(alias.ip));
      for (const auto& name : alias.hostnames) {
        const HostName host(to_lower(name));
        if (contains(policy_.cache_addresses, ip)) at_cache_.insert(host);
        if (contains(policy_.intercept_addresses, ip)) at_intercepting_.insert(host);
      }
    }
  }

  static bool contains(const std::vector<IpAddress>& addresses, const IpAddress& ip) {
    return std::find(addresses.begin(), addresses.end(), ip) != addresses.end();
  }

  void plan() {
    AliasPlan aliases;
    bool cache_unknown = false;
    for (const auto& chosen : chosen_) {
      decision_.rules.push_back(plain_name(chosen.name));
      if (chosen.ancestor)
        add_ancestor_aliases(*chosen.ancestor, decision_.rules.back(), aliases);
      else
        cache_unknown |= !add_cache_aliases(*chosen.rule, decision_.rules.back(), aliases);
    }
    check_mode_annotation();
    if (cache_unknown) {
      decision_.reasons.insert(decision_.reasons.begin(),
                               "the address of the cache is not known yet; does its Service exist?");
      if (aliases.empty()) {
        decision_.verdict = Verdict::kCacheUnknown;
        decision_.warn = true;
        return;
      }
    }
    decision_.verdict = Verdict::kInject;
    decision_.warn = true;
    aliases.finish(pod_, decision_);
    settle_sidecar();
    settle_trust();
    report_own_hosts_files();
  }

  // False when an address of the central cache is needed and not known.
  bool add_cache_aliases(const config::InjectionRule& rule, const std::string& name, AliasPlan& aliases) {
    bool all_known = true;
    const auto upstreams = upstreams_of(rule, name);
    const bool in_sidecar = wanted_mode(rule) == config::Mode::kSidecar && can_use_sidecar(upstreams, name);
    for (const auto* upstream : upstreams) {
      std::vector<std::string> not_in_sidecar;
      std::map<std::string, std::vector<std::string>> relayed;  // why -> hosts
      for (const auto& host : upstream->hosts) {
        const bool elsewhere = at_cache_.contains(host) || at_intercepting_.contains(host);
        std::string why;
        if (in_sidecar && !elsewhere && (!in_pod_ || in_pod_->served.contains(host))) {
          why = use_sidecar(*upstream, host, name, aliases);
        } else {
          if (in_sidecar) not_in_sidecar.push_back(host.get());
          why = use_central(*upstream, host, name, aliases);
          all_known &= !policy_.cache_addresses.empty();
        }
        if (!why.empty()) relayed[why].push_back(host.get());
      }
      for (const auto& [why, hosts] : relayed)
        decision_.reasons.push_back("https:// is relayed and not cached for " + listed(hosts) + ": " + why);
      // One reason for both causes: the second run finds the first one where this run finds the other.
      if (!not_in_sidecar.empty())
        decision_.reasons.push_back("rule " + name + " uses central for " + listed(not_in_sidecar) +
                                    ": they are mapped there already, or the pod's sidecar does not serve them");
    }
    return all_known;
  }

  // Both return why the host is not intercepted although it should be; empty when all is as configured.
  std::string use_sidecar(const config::Upstream& upstream, const HostName& host, const std::string& rule,
                          AliasPlan& aliases) {
    aliases.want(rule, host, {IpAddress(kLoopback)});
    served_by_sidecar_.insert(host);
    if (upstream.tls != config::TlsMode::kIntercept) return {};
    const bool is_intercepted =
        in_pod_ ? in_pod_->intercepted.contains(host) : sidecar_intercepts_.contains(upstream.name);
    if (!is_intercepted) return why_relayed(upstream, &TrustedHosts::sidecar);
    intercepted_in_sidecar_.insert(host);
    return {};
  }

  std::string use_central(const config::Upstream& upstream, const HostName& host, const std::string& rule,
                          AliasPlan& aliases) {
    const bool intercept = upstream.tls == config::TlsMode::kIntercept;
    std::string why = intercept ? why_relayed(upstream, &TrustedHosts::central) : "";
    if (intercept && why.empty() && policy_.intercept_addresses.empty())
      why = "the cache's Service for intercepted hosts has no address";
    const bool was_intercepted = at_intercepting_.contains(host);
    const bool now = intercept && why.empty() && !at_cache_.contains(host);
    if (was_intercepted || now) {
      aliases.want(rule, host, policy_.intercept_addresses);
      if (!served_by_sidecar_.contains(host)) at_intercepting_.insert(host);
      return was_intercepted ? "" : why;
    }
    aliases.want(rule, host, policy_.cache_addresses);
    if (!policy_.cache_addresses.empty() && !served_by_sidecar_.contains(host)) at_cache_.insert(host);
    return why;
  }

  // Hosts of one upstream are intercepted together, or none of them: a sidecar cannot tell them apart.
  std::string why_relayed(const config::Upstream& upstream, std::set<HostName> TrustedHosts::*hosts) {
    if (!no_trust_.empty()) return no_trust_;
    if (policy_.trust_everywhere) return {};
    const auto trusted = policy_.trusted.find(name_space_);
    const bool all = trusted != policy_.trusted.end() &&
                     std::all_of(upstream.hosts.begin(), upstream.hosts.end(),
                                 [&](const HostName& host) { return (trusted->second.*hosts).contains(host); });
    if (all) return {};
    decision_.untrusted = true;
    return "namespace " + name_space_.get() + " does not trust the cache's certificates yet; pods created later may";
  }

  std::vector<const config::Upstream*> upstreams_of(const config::InjectionRule& rule, const std::string& name) {
    std::vector<const config::Upstream*> upstreams;
    for (const auto& upstream_name : rule.upstreams) {
      if (const auto* upstream = policy_.settings->find_upstream(upstream_name))
        upstreams.push_back(upstream);
      else
        decision_.reasons.push_back("rule " + name + ": there is no upstream " + quoted(upstream_name.get()));
    }
    return upstreams;
  }

  // Takes the upstreams into the sidecar's configuration, where it is still to be written.
  bool can_use_sidecar(const std::vector<const config::Upstream*>& upstreams, const std::string& name) {
    if (in_pod_) return true;
    std::string why = no_sidecar_;
    if (why.empty()) {
      auto all = sidecar_upstreams_;
      for (const auto* upstream : upstreams)
        if (std::find(all.begin(), all.end(), upstream) == all.end()) all.push_back(upstream);
      std::set<UpstreamName> intercepted;
      for (const auto* upstream : all)
        if (upstream->tls == config::TlsMode::kIntercept && why_relayed(*upstream, &TrustedHosts::sidecar).empty())
          intercepted.insert(upstream->name);
      auto text = sidecar_configuration(*policy_.settings->webhook.sidecar, all, intercepted);
      if (text) {
        sidecar_intercepts_ = std::move(intercepted);
        sidecar_upstreams_ = std::move(all);
        sidecar_text_ = std::move(*text);
        return true;
      }
      why = "its hosts do not fit into an environment variable of a sidecar";
    }
    decision_.reasons.push_back("rule " + name + " uses central: " + why);
    return false;
  }

  // The sidecar is there for names that resolve to it.
  void settle_sidecar() {
    const auto is_used = [&](const WantedAlias& alias) {
      return alias.ip.get() == kLoopback &&
             std::any_of(alias.hosts.begin(), alias.hosts.end(),
                         [&](const HostName& host) { return served_by_sidecar_.contains(host); });
    };
    if (std::none_of(decision_.aliases.begin(), decision_.aliases.end(), is_used)) return;
    decision_.mode = config::Mode::kSidecar;
    if (!in_pod_)
      decision_.sidecar =
          Sidecar{*policy_.settings->webhook.sidecar, std::move(sidecar_text_), !sidecar_intercepts_.empty()};
  }

  // Containers need the bundle where a name resolves to a cache that shows its own certificate.
  void settle_trust() {
    const auto is_intercepted = [&](const WantedAlias& alias) {
      const auto& hosts = alias.ip.get() == kLoopback ? intercepted_in_sidecar_ : at_intercepting_;
      return (alias.ip.get() == kLoopback || contains(policy_.intercept_addresses, alias.ip)) &&
             std::any_of(alias.hosts.begin(), alias.hosts.end(),
                         [&](const HostName& host) { return hosts.contains(host); });
    };
    if (std::none_of(decision_.aliases.begin(), decision_.aliases.end(), is_intercepted)) return;
    const std::string blocked = why_no_trust(pod_);
    decision_.trust = blocked.empty() && (policy_.trust_everywhere || policy_.trusted.contains(name_space_));
    if (!decision_.trust)
      decision_.reasons.push_back(
          "the pod came with addresses of a cache whose certificates it cannot check: " +
          (blocked.empty() ? "its namespace has no ConfigMap " + std::string(kTrustConfigMap) : blocked));
    // Of a container that came after the decision to intercept.
    if (decision_.trust) decision_.reasons.insert(decision_.reasons.end(), conflicts_.begin(), conflicts_.end());
  }

  static void add_ancestor_aliases(const config::AncestorRule& rule, const std::string& name, AliasPlan& aliases) {
    for (const auto& alias : rule.aliases)
      for (const auto& host : alias.hosts) aliases.want(name, host, {alias.ip});
  }

  config::Mode wanted_mode(const config::InjectionRule& rule) const {
    const std::string* mode = pod_.annotation(kModeAnnotation);
    if (mode && *mode == "central") return config::Mode::kCentral;
    if (mode && *mode == "sidecar") return config::Mode::kSidecar;
    return rule.mode;
  }

  void check_mode_annotation() {
    const std::string* mode = pod_.annotation(kModeAnnotation);
    if (!mode || *mode == "central" || *mode == "sidecar") return;
    decision_.reasons.push_back(std::string("the annotation ") + kModeAnnotation + " is " + quoted(*mode) +
                                "; central and sidecar are known, the rule's own mode is used");
  }

  // The kubelet leaves a hosts file of the container's own alone.
  void report_own_hosts_files() {
    for (const auto& container : pod_.containers)
      for (const auto& mount : container.mounts) {
        std::string path = mount.path;
        while (path.size() > 1 && path.back() == '/') path.pop_back();
        if (path != "/etc/hosts") continue;
        decision_.reasons.push_back("container " + container.name +
                                    " mounts a file of its own at /etc/hosts and does not see the aliases");
      }
  }

  const Entry entry_;
  const Namespace& name_space_;
  const k8s::Pod& pod_;
  const Policy& policy_;
  std::map<std::string, std::string> labels_;
  std::vector<Chosen> chosen_;
  std::optional<SidecarHosts> in_pod_;  // what a sidecar that is there already serves
  std::string no_sidecar_;              // why there can be none
  std::set<HostName> at_cache_;         // names that the pod, or a rule so far, maps to the central cache
  std::set<HostName> at_intercepting_;  // the same to the address that intercepts
  std::string no_trust_;                // why the pod cannot trust the cache's certificates
  std::vector<std::string> conflicts_;  // of its containers with that
  std::set<HostName> served_by_sidecar_;
  std::set<HostName> intercepted_in_sidecar_;
  std::set<UpstreamName> sidecar_intercepts_;  // upstreams, in the configuration that is still to be written
  std::vector<const config::Upstream*> sidecar_upstreams_;
  std::string sidecar_text_;
  Decision decision_;
};

}  // namespace

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kInject:
      return "inject";
    case Verdict::kNotOptedIn:
      return "not-opted-in";
    case Verdict::kOptedOut:
      return "opted-out";
    case Verdict::kMirrorPod:
      return "mirror-pod";
    case Verdict::kNoRule:
      return "no-rule";
    case Verdict::kUnknownRule:
      return "unknown-rule";
    case Verdict::kCacheUnknown:
      return "cache-unknown";
  }
  return "unknown";
}

Decision decide(Entry entry, const Namespace& name_space, const k8s::Pod& pod, const Policy& policy) {
  return Decider(entry, name_space, pod, policy).decide();
}

}  // namespace nezha::webhook
