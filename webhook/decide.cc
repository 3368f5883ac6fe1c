#include "webhook/decide.h"

#include "webhook/alias_plan.h"
#include "webhook/annotations.h"
#include "webhook/sentence.h"

namespace nezha::webhook {
namespace {

// One rule that applies to the pod: ours or the ancestor's, exactly one of the pointers is set.
struct Chosen {
  std::string name;
  const config::InjectionRule* rule = nullptr;
  const config::AncestorRule* ancestor = nullptr;
};

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

  void plan() {
    AliasPlan aliases;
    bool cache_unknown = false;
    for (const auto& chosen : chosen_) {
      decision_.rules.push_back(plain_name(chosen.name));
      if (chosen.ancestor)
        add_ancestor_aliases(*chosen.ancestor, decision_.rules.back(), aliases);
      else
        cache_unknown |= !add_central_aliases(*chosen.rule, decision_.rules.back(), aliases);
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
    report_own_hosts_files();
  }

  // False when the cache's address is not known.
  bool add_central_aliases(const config::InjectionRule& rule, const std::string& name, AliasPlan& aliases) {
    if (wanted_mode(rule) == config::Mode::kSidecar)
      decision_.reasons.push_back("mode sidecar is not available in this version; rule " + name + " uses central");
    for (const auto& upstream_name : rule.upstreams) {
      const auto* upstream = policy_.settings->find_upstream(upstream_name);
      if (!upstream) {
        decision_.reasons.push_back("rule " + name + ": there is no upstream " + quoted(upstream_name.get()));
        continue;
      }
      for (const auto& host : upstream->hosts) aliases.want(name, host, policy_.cache_addresses);
    }
    return !policy_.cache_addresses.empty();
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
      for (std::string path : container.mount_paths) {
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
