// Watch: keeps a copy of the objects of one Scope up to date, and says when it changed.
// Scope -> list in pages -> watch from the list's resourceVersion (bookmarks asked for) -> snapshots.
//
// Chosen: callbacks get the whole state, not events, because every user here computes its answer from the whole state
// and a lost or repeated event then cannot matter.
//
//   watch closed by the server, or cut      -> watch again from the last version seen
//   410 as a status, or as an ERROR event   -> list again
//   any other failure                       -> back off (doubling, with jitter, up to the maximum), then list again
//   a line that is no event, or over limits -> counted and logged, then list again after the back-off
// An unreachable server keeps the last state; nothing is called meanwhile.
//
// Threads: on_change is called on the watch's own thread, never twice at once; it must not destroy the watch.
// stop() and the destructor cut a pending request and return once that thread has ended.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "nezha/base/named.h"
#include "nezha/k8s/api_client.h"
#include "nezha/obs/log.h"
#include "nezha/obs/metrics.h"

namespace nezha::k8s {

struct ObjectKey {
  Namespace name_space;
  std::string name;
  friend auto operator<=>(const ObjectKey&, const ObjectKey&) = default;
};

struct Object {
  ObjectKey key;
  std::string uid;
  std::string resource_version;
  std::string json;  // the whole object
};

using Snapshot = std::map<ObjectKey, std::shared_ptr<const Object>>;

struct WatchOptions {
  std::chrono::milliseconds backoff_first{500};
  std::chrono::milliseconds backoff_max{30'000};
  std::chrono::seconds server_timeout{240};  // after which the server is asked to end a watch
  size_t page_items = 100;
  size_t event_bytes_max = 8 * 1024 * 1024;  // one line of the stream
  size_t objects_max = 10'000;               // more than this is refused: the state is kept in memory
  // What is kept of an object's JSON, for objects that are large and of which little matters; null: all.
  std::function<std::string(const std::string& json)> reduce = {};
};

class Watch {
 public:
  using OnChange = std::function<void(const Snapshot&)>;

  // Starts at once; on_change comes first when the initial list is known. `log` and `restarts` (counts every attempt
  // after the first list; may be null) are borrowed and must outlive the watch.
  Watch(ApiServer server, Scope scope, WatchOptions options, OnChange on_change, obs::Log& log,
        obs::Counter* restarts = nullptr);
  ~Watch();
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void stop();  // idempotent

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace nezha::k8s
