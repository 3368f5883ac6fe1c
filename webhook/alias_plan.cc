#include "webhook/alias_plan.h"

#include <algorithm>

#include "nezha/base/limits.h"
#include "nezha/base/text.h"
#include "webhook/sentence.h"

namespace nezha::webhook {
namespace {

bool contains(const std::vector<IpAddress>& ips, const IpAddress& ip) {
  return std::find(ips.begin(), ips.end(), ip) != ips.end();
}

std::string canonical(const std::string& ip) { return canonical_ip(ip).value_or(ip); }

}  // namespace

void AliasPlan::want(const std::string& rule, const HostName& host, const std::vector<IpAddress>& ips) {
  if (ips.empty()) return;
  const auto [found, added] = owners_.try_emplace(host, Owner{rule, {}});
  if (added) order_.push_back(host);
  Owner& owner = found->second;
  for (const auto& ip : ips) {
    if (contains(owner.ips, ip)) continue;
    if (owner.rule == rule) {
      owner.ips.push_back(ip);
      continue;
    }
    auto& hosts =
        conflicts_["rule " + rule + " wants another address than rule " + owner.rule + ", which comes first, for "];
    if (hosts.empty() || hosts.back() != host.get()) hosts.push_back(host.get());
  }
}

void AliasPlan::finish(const k8s::Pod& pod, Decision& decision) {
  IpsOfHost pod_ips;
  for (const auto& alias : pod.host_aliases)
    for (const auto& name : alias.hostnames) pod_ips[to_lower(name)].insert(canonical(alias.ip));
  for (const auto& [reason, hosts] : conflicts_) decision.reasons.push_back(reason + listed(hosts));
  drop_hosts_of_pod(pod_ips, decision);

  std::map<IpAddress, size_t> group_of;
  for (const auto& host : order_) {
    for (const auto& ip : owners_.at(host).ips) {
      const auto [group, added] = group_of.try_emplace(ip, decision.aliases.size());
      if (added) decision.aliases.push_back({ip, {}});
      decision.aliases[group->second].hosts.push_back(host);
    }
  }
  report_long_lines(pod, decision);
}

void AliasPlan::drop_hosts_of_pod(const IpsOfHost& pod_ips, Decision& decision) {
  std::map<std::string, std::vector<std::string>> kept;  // the pod's address -> hosts
  std::erase_if(order_, [&](const HostName& host) {
    const auto own = pod_ips.find(host.get());
    if (own == pod_ips.end()) return false;
    const auto& wanted = owners_.at(host).ips;
    const auto elsewhere = std::find_if(own->second.begin(), own->second.end(),
                                        [&](const std::string& ip) { return !contains(wanted, IpAddress(ip)); });
    if (elsewhere == own->second.end()) return false;
    kept[*elsewhere].push_back(host.get());
    return true;
  });
  for (const auto& [ip, hosts] : kept)
    decision.reasons.push_back("the pod's own hostAliases map " + listed(hosts) + " to " + ip +
                               "; that was left as it is");
}

void AliasPlan::report_long_lines(const k8s::Pod& pod, Decision& decision) const {
  std::map<std::string, std::set<std::string>> names_of;
  for (const auto& alias : pod.host_aliases)
    names_of[canonical(alias.ip)].insert(alias.hostnames.begin(), alias.hostnames.end());
  for (const auto& wanted : decision.aliases) {
    auto& names = names_of[wanted.ip.get()];
    for (const auto& host : wanted.hosts) names.insert(host.get());
    size_t bytes = wanted.ip.get().size() + 1;
    for (const auto& name : names) bytes += name.size() + 1;
    if (bytes <= limits::kHostsLineBytesMusl) continue;
    decision.reasons.push_back("the line of " + wanted.ip.get() + " in /etc/hosts has " + std::to_string(bytes) +
                               " bytes; images with musl libc (Alpine) see only the names in its first " +
                               std::to_string(limits::kHostsLineBytesMusl) + " and resolve the others by DNS");
  }
}

}  // namespace nezha::webhook
