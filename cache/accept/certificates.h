// Certificates: the pairs of `tls.certificates`, chosen by server name and followed on disk, and those of
// `tls.directory`, which come and go as the files of a mounted Secret do: each *.crt, with the one tls.key.
// A pair that changes is read again; when it is bad, the last good one stays in force, and that is logged and counted.
// Connections keep what they began with. The list of pairs is fixed at the start; a directory may be missing or empty.
// Threads: any; one of its own looks at the files once a second.
#pragma once

#include <memory>
#include <string_view>

#include "nezha/base/clock.h"
#include "nezha/config/settings.h"
#include "nezha/net/tls.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"

namespace nezha::cache {

class Certificates {
 public:
  virtual ~Certificates() = default;  // stops following
  // The first pair whose certificate is valid now and names this host (lower case), by itself or by a wildcard for its
  // first label. Null when there is none.
  virtual std::shared_ptr<const net::TlsServer> find(std::string_view host) const = 0;
};

// Fails with kFixInput: a file that cannot be read or used; the message is one line and names key and file.
Result<std::unique_ptr<Certificates>> load_certificates(const config::TlsSettings& settings, const Clock& clock,
                                                        obs::Log& log, obs::Metrics& metrics);

}  // namespace nezha::cache
