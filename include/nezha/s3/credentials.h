// Credentials of S3 clients, in types that keep their secrets to themselves. Where they come from is not known here.
// Secrets are moved, never copied, have no text form and no comparison, and overwrite their memory when they end.
// Threads: values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/named.h"

namespace nezha::s3 {

using AccessKeyId = Named<struct AccessKeyIdTag, std::string>;  // "AKIAIOSFODNN7EXAMPLE": names a secret, is none

// Bytes that must not be seen: printing one does not compile.
class Hidden {
 public:
  Hidden() = default;
  explicit Hidden(std::string_view bytes) : bytes_(bytes.begin(), bytes.end()) {}
  Hidden(Hidden&& other) noexcept = default;  // the memory itself changes hands
  Hidden& operator=(Hidden&& other) noexcept;
  ~Hidden();

  bool empty() const { return bytes_.empty(); }
  // To compute with, or to send to whom it belongs; never for a message, a log line or a file. Valid as long as this.
  std::string_view reveal() const { return {bytes_.data(), bytes_.size()}; }

  template <class Stream>
  friend Stream& operator<<(Stream&, const Hidden&) = delete;

 private:
  std::vector<char> bytes_;  // not a string: a short one would leave a copy behind when moved
};

class SecretKey : public Hidden {
 public:
  using Hidden::Hidden;
};

// Goes with temporary credentials, in every request (X-Amz-Security-Token).
class SessionToken : public Hidden {
 public:
  using Hidden::Hidden;
};

struct Credentials {
  AccessKeyId access_key_id;
  SecretKey secret_key;
  SessionToken session_token;  // empty: credentials of long life
};

// What a signature is good for: "20130524/us-east-1/s3/aws4_request".
struct CredentialScope {
  std::string date;  // YYYYMMDD, UTC
  std::string region;
  std::string service = "s3";
  std::string text() const { return date + '/' + region + '/' + service + "/aws4_request"; }
  friend bool operator==(const CredentialScope&, const CredentialScope&) = default;
};

}  // namespace nezha::s3
