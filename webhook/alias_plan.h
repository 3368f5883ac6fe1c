// AliasPlan: collects which names must resolve to which addresses, rule by rule, and settles the conflicts:
// the first rule that names a host decides its addresses, and the pod's own alias for a host beats every rule.
// Threads: one.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "nezha/base/named.h"
#include "nezha/k8s/pod.h"
#include "webhook/decide.h"

namespace nezha::webhook {

class AliasPlan {
 public:
  // `rule` wants `host` at each of `ips`. Repeating it changes nothing.
  void want(const std::string& rule, const HostName& host, const std::vector<IpAddress>& ips);
  bool empty() const { return order_.empty(); }

  // Writes the aliases, and a reason for each host that is left out, into the decision. Hosts that the pod maps to
  // a wanted address already stay in, so that a second run decides the same.
  void finish(const k8s::Pod& pod, Decision& decision);

 private:
  struct Owner {
    std::string rule;
    std::vector<IpAddress> ips;
  };
  using IpsOfHost = std::map<std::string, std::set<std::string>>;  // host -> canonical addresses

  void drop_hosts_of_pod(const IpsOfHost& pod_ips, Decision& decision);
  void report_long_lines(const k8s::Pod& pod, Decision& decision) const;

  std::vector<HostName> order_;  // hosts in the order they were first wanted
  std::map<HostName, Owner> owners_;
  std::map<std::string, std::vector<std::string>> conflicts_;  // "rule a already decides" -> hosts
};

}  // namespace nezha::webhook
