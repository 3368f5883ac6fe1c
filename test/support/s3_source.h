// S3Source: a ScriptedOrigin's handler that is S3 in small: it verifies signatures, knows who may read, and answers
// whole objects, ranges and conditions. And the signed requests of its readers.
// Threads: the handler's any; changes while no request is under way.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "nezha/base/clock.h"
#include "test/support/scripted_origin.h"
#include "test/support/temporary_directory.h"

namespace nezha::test {

// A made-up pair of keys. Each name has its own.
struct KeyPair {
  std::string id;
  std::string secret;
};
KeyPair key_pair(const std::string& name);

// "GET path" to data.example, signed by Authorization, with more fields ("Name: value\r\n" each, signed too).
std::string signed_get(const KeyPair& keys, std::string_view path, WallTime now, std::string_view fields = "",
                       std::string_view method = "GET");
// The same as a signed URL, good for an hour.
std::string presigned_get(const KeyPair& keys, std::string_view path, WallTime now);

class S3Source {
 public:
  explicit S3Source(const Clock& clock) : clock_(clock) {}
  void put(const std::string& path, std::string body, std::string etag) {
    objects_[path] = {std::move(body), std::move(etag)};
  }
  void allow(const KeyPair& keys) { secrets_[keys.id] = keys.secret; }
  void revoke(const KeyPair& keys) { secrets_.erase(keys.id); }

  void operator()(OriginConnection& connection, const RecordedRequest& request) const {
    connection.send(answer(request));
  }
  std::string answer(const RecordedRequest& request) const;

 private:
  struct Object {
    std::string body;
    std::string etag;
  };
  bool may_read(const RecordedRequest& request) const;
  const Clock& clock_;
  std::map<std::string, Object> objects_;
  std::map<std::string, std::string> secrets_;  // of those who may read, by access key id
};

// A directory of mounted Secrets with one, "keys".
class MountedKeys {
 public:
  explicit MountedKeys(const KeyPair& own) { write(own, ""); }
  void write(const KeyPair& own, const std::string& readers) const;
  const std::string& path() const { return directory_.path(); }

 private:
  TemporaryDirectory directory_;
};

}  // namespace nezha::test
