#include "webhook/controller/events.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "webhook/controller/short_hash.h"
#include "webhook/controller/timestamp.h"

namespace nezha::webhook {
namespace {

const k8s::Resource kEvents{"", "v1", "events"};
constexpr size_t kWaitingMax = 200;
constexpr size_t kMessageBytesMax = 1000;
constexpr size_t kNameBytesMax = 200;  // of the object's name within the Event's, which may have 253

// Cut between two characters of UTF-8.
std::string cut(const std::string& text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text;
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

std::string event_name(const Note& note) {
  const std::string identity = note.about.kind + "\n" + note.about.uid + "\n" + note.about.resource_version + "\n" +
                               note.reason + "\n" + note.message;
  std::string name = note.about.name.substr(0, kNameBytesMax);
  while (name.ends_with('.') || name.ends_with('-')) name.pop_back();
  return name + "." + short_hash(identity);
}

}  // namespace

std::string event_json(const Note& note, WallTime now) {
  const std::string time = to_timestamp(now);
  const nlohmann::json event{{"apiVersion", "v1"},
                             {"kind", "Event"},
                             {"metadata", {{"name", event_name(note)}, {"namespace", note.about.name_space.get()}}},
                             {"involvedObject",
                              {{"apiVersion", "v1"},
                               {"kind", note.about.kind},
                               {"namespace", note.about.name_space.get()},
                               {"name", note.about.name},
                               {"uid", note.about.uid},
                               {"resourceVersion", note.about.resource_version}}},
                             {"type", note.warning ? "Warning" : "Normal"},
                             {"reason", note.reason},
                             {"message", cut(note.message, kMessageBytesMax)},
                             {"source", {{"component", "nezha-webhook"}}},
                             {"reportingComponent", "nezha-webhook"},
                             {"reportingInstance", ""},
                             {"firstTimestamp", time},
                             {"lastTimestamp", time},
                             {"count", 1}};
  return event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void EventWriter::add(Note note) {
  if (waiting_.size() >= kWaitingMax) waiting_.pop_front();
  waiting_.push_back(std::move(note));
}

bool EventWriter::flush() {
  while (!waiting_.empty()) {
    const Note& note = waiting_.front();
    const auto created = api_.create(kEvents, note.about.name_space, event_json(note, clock_.wall()));
    if (!created) {
      if (created.error().remedy == Remedy::kRetryLater) return false;
      log_.warning("cannot write an Event", {{"about", note.about.name}, {"why", created.error().message}});
    }
    waiting_.pop_front();
  }
  return true;
}

}  // namespace nezha::webhook
