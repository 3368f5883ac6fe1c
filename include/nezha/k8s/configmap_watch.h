// ConfigMapWatch: follows one ConfigMap by namespace and name, for as long as it lives.
// Lists, then watches; resumes, backs off and lists again as watch.h describes. Needs the verbs get, list and watch on
// that one ConfigMap (RBAC resourceNames work, because the requests carry a metadata.name field selector).
// It does not parse or validate what the ConfigMap holds.
//
// Threads: on_change is called on a thread of the watch, never twice at once. It must not destroy the watch. The
// destructor (or stop()) cuts a pending request and returns once the thread has ended: no call comes after it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "nezha/base/named.h"
#include "nezha/k8s/api_server.h"
#include "nezha/obs/log.h"

namespace nezha::k8s {

class Watch;

class ConfigMapWatch {
 public:
  using Data = std::map<std::string, std::string>;  // the ConfigMap's `data`; `binaryData` is ignored
  // nullopt: the ConfigMap does not exist. Called first when the server's answer to the initial list is known (not
  // before: a server that cannot be reached calls nothing), then after every change of `data`.
  using OnChange = std::function<void(std::optional<Data> data)>;

  // Starts at once. `log` is borrowed and must outlive the watch.
  ConfigMapWatch(ApiServer server, Namespace name_space, std::string name, OnChange on_change, obs::Log& log);
  ~ConfigMapWatch();
  ConfigMapWatch(const ConfigMapWatch&) = delete;
  ConfigMapWatch& operator=(const ConfigMapWatch&) = delete;

  void stop();  // idempotent

 private:
  std::unique_ptr<Watch> watch_;
};

}  // namespace nezha::k8s
