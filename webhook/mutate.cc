#include "webhook/mutate.h"

#include <algorithm>
#include <map>
#include <set>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "webhook/annotations.h"
#include "webhook/status.h"

namespace nezha::webhook {
namespace {

// What the pod maps to one address: in its first item of that address, or in any further one that repeats it.
struct Present {
  size_t item = 0;
  std::set<std::string> hosts;
};

std::map<std::string, Present> present_aliases(const k8s::Pod& pod) {
  std::map<std::string, Present> present;
  for (size_t i = 0; i < pod.host_aliases.size(); ++i) {
    const auto& alias = pod.host_aliases[i];
    Present& entry = present.try_emplace(canonical_ip(alias.ip).value_or(alias.ip), Present{i, {}}).first->second;
    for (const auto& name : alias.hostnames) entry.hosts.insert(to_lower(name));
  }
  return present;
}

// The edits that make the wanted names resolve to the wanted addresses, where they do not already.
void alias_edits(const k8s::Pod& pod, const std::vector<WantedAlias>& aliases, std::vector<Edit>& edits) {
  const auto present = present_aliases(pod);
  for (const auto& wanted : aliases) {
    const auto entry = present.find(wanted.ip.get());
    std::vector<std::string> missing;
    for (const auto& host : wanted.hosts)
      if (entry == present.end() || !entry->second.hosts.contains(host.get())) missing.push_back(host.get());
    if (missing.empty()) continue;
    if (entry == present.end())
      edits.push_back(AddAlias{wanted.ip.get(), std::move(missing)});
    else
      edits.push_back(AppendHosts{entry->second.item, std::move(missing)});
  }
}

Status status_of(const Decision& decision) {
  Status status{
      decision.rules, decision.mode == config::Mode::kCentral ? "central" : "sidecar", {}, 0, decision.reasons};
  std::set<HostName> seen;
  for (const auto& alias : decision.aliases)
    for (const auto& host : alias.hosts)
      if (seen.insert(host).second) status.hosts.push_back(host.get());
  return status;
}

// An earlier status says what is true of this pod only for names that are still aliased: a template copied from a
// running pod may carry an old one.
void drop_stale(const k8s::Pod& pod, Status& earlier) {
  std::set<std::string> mapped;
  for (const auto& alias : pod.host_aliases) mapped.insert(alias.hostnames.begin(), alias.hostnames.end());
  const bool stale =
      std::any_of(earlier.hosts.begin(), earlier.hosts.end(), [&](const auto& host) { return !mapped.contains(host); });
  if (stale) earlier = Status{};
}

size_t bytes_of(const std::map<std::string, std::string>& annotations, const char* except) {
  size_t bytes = 0;
  for (const auto& [key, value] : annotations)
    if (key != except) bytes += key.size() + value.size();
  return bytes;
}

void status_edit(const k8s::Pod& pod, const Decision& decision, Edits& edits) {
  const std::string* before = pod.annotation(kStatusAnnotation);
  Status earlier;
  if (before) {
    if (auto read = read_status(*before))
      earlier = std::move(*read);
    else
      edits.warnings.push_back(std::string("the annotation ") + kStatusAnnotation +
                               " is Nezha's; the pod's own value was replaced");
    drop_stale(pod, earlier);
  }
  std::string value = write_status(join(std::move(earlier), status_of(decision)));
  if (before && *before == value) return;
  // Above its limit the API server would refuse the pod, which must not be our doing.
  const size_t bytes =
      bytes_of(pod.annotations, kStatusAnnotation) + std::string_view(kStatusAnnotation).size() + value.size();
  if (bytes > limits::kAnnotationsBytesMax) {
    edits.warnings.push_back(std::string("no room for the annotation ") + kStatusAnnotation + " beside the pod's own");
    return;
  }
  edits.list.push_back(SetStatus{std::move(value)});
}

}  // namespace

Edits mutate(const k8s::Pod& pod, const Decision& decision) {
  Edits edits;
  if (decision.verdict != Verdict::kInject) return edits;
  alias_edits(pod, decision.aliases, edits.list);
  status_edit(pod, decision, edits);
  return edits;
}

}  // namespace nezha::webhook
