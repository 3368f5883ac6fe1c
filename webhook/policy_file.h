// PolicyFile: a configuration file -> the Policy in force, for a webhook without Kubernetes.
// A file that became wrong leaves the last good Policy in force.
// Threads: one at a time; the PolicyStore is borrowed.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "nezha/base/named.h"
#include "nezha/base/result.h"
#include "webhook/file_version.h"
#include "webhook/policy.h"

namespace nezha::webhook {

class PolicyFile {
 public:
  PolicyFile(std::string path, std::optional<IpAddress> pinned_address, PolicyStore& policies)
      : path_(std::move(path)), pinned_address_(std::move(pinned_address)), policies_(policies) {}

  // Reads the file when it changed since it was last read; true: a new Policy is in force. Failures (kFixInput) are
  // told once per change.
  [[nodiscard]] Result<bool> refresh();

 private:
  const std::string path_;
  const std::optional<IpAddress> pinned_address_;
  PolicyStore& policies_;
  std::optional<FileVersion> seen_;
};

}  // namespace nezha::webhook
