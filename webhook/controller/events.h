// EventWriter: notes about an object -> Kubernetes Events on it, so that `kubectl describe` shows them.
// An Event's name follows from object, version and text: several replicas, or one that restarts, make one Event.
// Notes wait in memory while the API fails; beyond the limit the oldest is dropped (it was logged before).
// Threads: one at a time.
#pragma once

#include <deque>
#include <string>

#include "nezha/base/clock.h"
#include "nezha/k8s/api_client.h"
#include "nezha/obs/log.h"
#include "webhook/controller/config_map.h"

namespace nezha::webhook {

struct Note {
  ObjectReference about;
  bool warning = false;  // type Warning, else Normal
  std::string reason;    // CamelCase
  std::string message;
};

// The Event's JSON. Pure.
std::string event_json(const Note& note, WallTime now);

class EventWriter {
 public:
  EventWriter(k8s::ApiClient& api, const Clock& clock, obs::Log& log) : api_(api), clock_(clock), log_(log) {}

  void add(Note note);
  // Writes what waits. False: something waits still, call again later.
  bool flush();

 private:
  k8s::ApiClient& api_;
  const Clock& clock_;
  obs::Log& log_;
  std::deque<Note> waiting_;
};

}  // namespace nezha::webhook
