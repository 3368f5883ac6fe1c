// ApiClient: the few calls Nezha makes to the Kubernetes API, as blocking requests with a deadline.
// Objects travel as JSON text, so that no JSON library shows here; values in, values out, nothing is cached.
//
// Failures carry what to do next:
//   kAbsent      404
//   kRetryLater  409 (read again first), 401 (the token may just have been rotated), 408, 429, 5xx, no connection,
//                a deadline passed, an answer over the size limit or cut short
//   kFixInput    400, 413, 422 and other 4xx: the request is wrong and will stay wrong
//   kGiveUp      403: the message is the server's own and names the missing permission
// A GET on a pooled connection that turns out to be closed is repeated once, at once; a write never is.
//
// Threads: any; requests of one client run one after the other over one kept-alive connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "nezha/base/named.h"
#include "nezha/base/result.h"
#include "nezha/k8s/api_server.h"

namespace nezha::k8s {

// A kind of object as its URL names it: {"", "v1", "configmaps"}, {"apps", "v1", "deployments"}.
struct Resource {
  std::string group;  // empty: the core group
  std::string version;
  std::string plural;

  // The collection's URL path; an empty namespace means cluster-scoped, or all namespaces.
  std::string path(const Namespace& name_space) const;
  std::string path(const Namespace& name_space, std::string_view name) const;
};

// Which objects of a kind. Selectors are in the API's own text form; empty ones do not select.
struct Scope {
  Resource resource;
  Namespace name_space;  // empty: all namespaces, or cluster-scoped
  std::string label_selector;
  std::string field_selector;
};

enum class PatchType { kJson, kMerge, kStrategic };

class ApiClient {
 public:
  struct Limits {
    std::chrono::milliseconds connect{5'000};
    std::chrono::milliseconds request{15'000};     // silence while an answer is awaited
    size_t response_bytes_max = 16 * 1024 * 1024;  // one object is at most 3 MiB; a list is read in pages
  };

  explicit ApiClient(ApiServer server);
  ApiClient(ApiServer server, Limits limits);
  ~ApiClient();
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // Each returns the object the server answered with; create() nothing when an object of that name exists already.
  [[nodiscard]] Result<std::string> get(const Resource& resource, const Namespace& name_space, std::string_view name);
  [[nodiscard]] Result<std::optional<std::string>> create(const Resource& resource, const Namespace& name_space,
                                                          std::string_view json);
  // Replaces the object. With metadata.resourceVersion in `json` a change since that version is a 409.
  [[nodiscard]] Result<std::string> update(const Resource& resource, const Namespace& name_space, std::string_view name,
                                           std::string_view json);
  [[nodiscard]] Result<std::string> patch(const Resource& resource, const Namespace& name_space, std::string_view name,
                                          PatchType type, std::string_view body);
  // Deletes the object if it is still of this version; one that is absent already is a success.
  [[nodiscard]] Result<> remove(const Resource& resource, const Namespace& name_space, std::string_view name,
                                std::string_view resource_version);
  // One page of a list: `page_token` is metadata.continue of the page before, empty for the first.
  [[nodiscard]] Result<std::string> list(const Scope& scope, size_t page_items, std::string_view page_token = {});

  // Cuts a pending request from another thread; later ones fail at once with kRetryLater.
  void stop();

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace nezha::k8s
