#include "cli/explain.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/spark.h"
#include "cli/templates.h"
#include "webhook/annotations.h"
#include "webhook/sidecar.h"

namespace nezha::cli {
namespace {

using webhook::Verdict;
const std::string kLabel = std::string(webhook::kInjectLabel) + ": \"true\"";

const char* path_of(webhook::Entry entry) {
  switch (entry) {
    case webhook::Entry::kPod:
      return "the pod's label";
    case webhook::Entry::kNamespace:
      return "the namespace's label";
    case webhook::Entry::kSelector:
      return "the selector of a rule";
    case webhook::Entry::kAncestor:
      return "the namespace's label hostaliases-injector";
  }
  return "";
}

std::string joined(const std::vector<std::string>& items, const char* separator) {
  std::string text;
  for (const auto& item : items) text += (text.empty() ? "" : separator) + item;
  return text;
}

void line(std::string& out, const std::string& text) { out += "  " + text + '\n'; }

void explain_injection(const Call& call, std::string& out) {
  const auto& decision = call.change.decision;
  line(out, "considered: by " + std::string(path_of(call.entry)));
  line(out, "rule:       " + joined(decision.rules, ", "));
  line(out, "mode:       " + std::string(decision.mode == config::Mode::kCentral ? "central" : "sidecar"));
  if (decision.sidecar) line(out, "sidecar:    " + webhook::describe(decision.sidecar->settings));
  for (const auto& alias : decision.aliases) {
    std::vector<std::string> hosts;
    for (const auto& host : alias.hosts) hosts.push_back(host.get());
    line(out, "alias:      " + alias.ip.get() + "  " + joined(hosts, " "));
  }
  if (call.change.patch.empty()) line(out, "note:       the pod has all of this already; nothing changes");
  for (const auto& reason : decision.reasons) line(out, "note:       " + reason);
}

bool has_label(const std::map<std::string, std::string>& labels) {
  const auto found = labels.find(webhook::kInjectLabel);
  return found != labels.end() && found->second == "true";
}

// What the user can do about a pod that nobody asked to accelerate.
void advise(const Template& found, const Surroundings& around, std::string& out) {
  if (!found.where.empty() && !found.copied_labels && has_label(found.owner_labels))
    line(out, "note:       the label on the " + found.owner_kind + " itself does not reach its pods");
  line(out, "do this:    put the label " + kLabel + " under " + found.labels_path);
  line(out, "or this:    kubectl label namespace " + around.name_space.get() + ' ' + webhook::kInjectLabel +
                "=true, which opts in all its pods");
}

void explain_template(const Template& found, const nlohmann::json& pod, const Surroundings& around,
                      const webhook::Policy& policy, std::string& out) {
  const auto simulation = simulate(pod, around, policy);
  const bool injected = std::any_of(simulation.calls.begin(), simulation.calls.end(), [](const Call& call) {
    return call.change.decision.verdict == Verdict::kInject && !call.change.failed;
  });
  out += found.title() + " (namespace " + around.name_space.get() +
         "): " + (injected ? "accelerated" : "left as it is") + '\n';
  if (!injected) {
    const auto& change = simulation.calls.front().change;
    for (const auto& reason : change.failed ? change.warnings : change.decision.reasons)
      line(out, "reason:     " + without_prefix(reason));
    if (change.decision.verdict == Verdict::kNotOptedIn && !change.failed) advise(found, around, out);
    return;
  }
  bool first = true;
  for (const auto& call : simulation.calls) {
    if (call.change.decision.verdict != Verdict::kInject) continue;
    if (first || !call.change.patch.empty()) explain_injection(call, out);  // later entries seldom add anything
    first = false;
  }
}

}  // namespace

std::string explain(const Manifest& manifest, const Surroundings& around, const webhook::Policy& policy) {
  std::string out;
  for (const auto& document : manifest.documents) {
    for (const auto& found : find_templates(document)) {
      explain_template(found, effective_pod(document, found), in_namespace(around, found.owner_namespace), policy, out);
      out += '\n';
    }
    for (const auto& role : find_spark_roles(document)) {
      explain_template(role.found, role.pod, in_namespace(around, role.found.owner_namespace), policy, out);
      out += '\n';
    }
  }
  if (out.empty()) return "no pod and no pod template in the input\n";
  out.pop_back();
  return out;
}

}  // namespace nezha::cli
