// KeyRing: the S3 keys of mounted Secrets (`credentialsSecretRef`), kept up to date. Each Secret is a folder with
// files:
//   accessKeyId, secretAccessKey   what the cache signs its own requests with; a reader who uses them is known, too
//   sessionToken                   with temporary keys, else absent
//   readers                        optional: further keys of readers, one "ACCESS_KEY_ID SECRET_ACCESS_KEY" a line
//   region                         optional, of requests that no reader's signature names one for; default us-east-1
// A bad change leaves the last good keys in force, and is logged and counted; a folder that is gone takes its keys
// along. No text made here holds anything of a secret. Threads: any.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"
#include "nezha/s3/credentials.h"

namespace nezha::cache {

struct KeySet {
  s3::Credentials own;
  std::vector<s3::Credentials> readers;
  std::string region;

  // Whoever has this key: `own`, or one of `readers`; null for a key that is not known.
  const s3::Credentials* find(const s3::AccessKeyId& id) const;
};

class KeyRing {
 public:
  virtual ~KeyRing() = default;  // stops following
  // Null when there is no such Secret, or nothing of it could be read yet.
  virtual std::shared_ptr<const KeySet> find(const std::string& secret) const = 0;
};

// Reads the folder of one Secret. Fails with kFixInput; the message names the file.
Result<KeySet> read_key_set(const std::string& folder);

// Reads all Secrets below the directory, and looks again every second. A directory that is not there holds none.
std::unique_ptr<KeyRing> follow_key_ring(std::string directory, obs::Log& log, obs::Metrics& metrics);

}  // namespace nezha::cache
