// FakeApiServer: a small Kubernetes API server on loopback, in this process, for tests of clients and controllers.
// Keeps JSON objects by URL path with resource versions as the real one does: create conflicts, update preconditions,
// lists in pages with label and metadata.name selectors, watches with history, bookmarks, and 410 for forgotten
// versions. Faults are scripted per request. It checks no schema and no permissions.
// Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nezha/k8s/api_server.h"

namespace nezha::test {

struct SeenRequest {
  std::string method;
  std::string path;    // without the query
  std::string target;  // with it
  std::string body;
  std::string authorization;
  std::string content_type;
  bool watch = false;
};

// What to answer instead of the truth.
struct Fault {
  int status = 500;
  std::string body;
  bool after = false;  // do the request first, then answer this: the caller cannot know that it was done
  bool cut = false;    // close in the middle of the body
};

class FakeApiServer {
 public:
  FakeApiServer();
  // Over TLS, with these PEM texts.
  FakeApiServer(const std::string& certificate_pem, const std::string& key_pem);
  ~FakeApiServer();
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  k8s::ApiServer address() const;  // no token, no CA file

  // As somebody else with kubectl: creates or replaces the object at this path, e.g.
  // "/api/v1/namespaces/a/configmaps/b". Returns its new resource version.
  std::string put(const std::string& path, const std::string& json);
  void remove(const std::string& path);
  std::optional<std::string> get(const std::string& path) const;
  std::vector<std::string> paths_under(const std::string& prefix) const;

  // Asked for every request, one at a time; nullopt: answer truthfully.
  using FaultRule = std::function<std::optional<Fault>(const SeenRequest&)>;
  void set_faults(FaultRule rule);

  void end_watches();                       // closes every open watch properly
  void cut_watches();                       // breaks every open watch off in the middle of the stream
  void send_raw(const std::string& bytes);  // writes these bytes into every open watch
  void send_bookmarks();                    // a bookmark with the newest version into every open watch
  void forget_history();                    // watches from a version up to now get 410
  void drop_events(bool on);                // changes are stored, but no open watch hears of them
  size_t open_watches() const;

  std::vector<SeenRequest> requests() const;
  size_t count(const std::string& method, const std::string& path_part) const;
  void forget_requests();

  // Waits until `holds`, asked again whenever something happened here. False after 20 s.
  bool wait_until(const std::function<bool()>& holds) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nezha::test
