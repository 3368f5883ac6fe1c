#include "webhook/mutate.h"

#include <algorithm>
#include <map>
#include <set>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "webhook/annotations.h"
#include "webhook/sidecar.h"
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

// Sets the annotation, unless that would bring the pod above what the API server takes: it would refuse the pod.
bool set_annotation(const k8s::Pod& pod, const char* key, std::string value, std::vector<Edit>& edits) {
  size_t bytes = std::string_view(key).size() + value.size();
  for (const auto& [other_key, other] : pod.annotations)
    if (other_key != key) bytes += other_key.size() + other.size();
  for (const auto& edit : edits)
    if (const auto* other = std::get_if<SetAnnotation>(&edit)) bytes += other->key.size() + other->value.size();
  if (bytes > limits::kAnnotationsBytesMax) return false;
  edits.push_back(SetAnnotation{key, std::move(value)});
  return true;
}

// The parts of a sidecar.
void sidecar_edits(const k8s::Pod& pod, const Sidecar& sidecar, std::vector<Edit>& edits) {
  edits.push_back(AddInitContainer{sidecar_position(pod), sidecar_container(sidecar)});
  if (auto volume = sidecar_volume(sidecar.settings)) edits.push_back(AddVolume{std::move(*volume)});
  edits.push_back(AddVolume{no_token_volume()});
  if (sidecar.intercepts && !pod.volumes.contains(kSidecarCertificates))
    edits.push_back(AddVolume{sidecar_certificates_volume()});
  const auto sets_ports = [](const k8s::Sysctl& sysctl) { return sysctl.name == kPortSysctl; };
  if (std::none_of(pod.sysctls.begin(), pod.sysctls.end(), sets_ports)) edits.push_back(AddSysctl{kPortSysctl, "0"});
  if (sidecar.settings.volume != config::SidecarSettings::Volume::kEmptyDir) return;
  // A cache is no data that a node must be kept for.
  const std::string* others = pod.annotation(kEvictableVolumesAnnotation);
  if (others)
    for (const auto name : split(*others, ','))
      if (trim(name) == kSidecarName) return;
  const std::string all = (others && !others->empty() ? *others + ',' : std::string()) + kSidecarName;
  set_annotation(pod, kEvictableVolumesAnnotation, all, edits);
}

// What is missing for containers to trust the cache; those that came later get theirs in a later run.
void trust_edits(const k8s::Pod& pod, std::vector<Edit>& edits) {
  for (auto& addition : plan_trust(pod).additions) edits.push_back(TrustContainer{std::move(addition)});
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
  if (!set_annotation(pod, kStatusAnnotation, std::move(value), edits.list))
    edits.warnings.push_back(std::string("no room for the annotation ") + kStatusAnnotation + " beside the pod's own");
}

}  // namespace

Edits mutate(const k8s::Pod& pod, const Decision& decision) {
  Edits edits;
  if (decision.verdict != Verdict::kInject) return edits;
  alias_edits(pod, decision.aliases, edits.list);
  if (decision.sidecar) sidecar_edits(pod, *decision.sidecar, edits.list);
  const bool mounts_trust = decision.trust || (decision.sidecar && decision.sidecar->intercepts);
  if (mounts_trust && !pod.volumes.contains(kTrustVolume)) edits.list.push_back(AddVolume{trust_volume()});
  if (decision.trust) trust_edits(pod, edits.list);
  status_edit(pod, decision, edits);
  return edits;
}

}  // namespace nezha::webhook
