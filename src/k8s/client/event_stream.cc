#include "src/k8s/client/event_stream.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace nezha::k8s {
namespace {

using Json = nlohmann::json;

// A member's text, or empty when it is absent or of another type.
std::string text_of(const Json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_string() ? member->get<std::string>() : std::string();
}

std::shared_ptr<const Object> object_of(const Json& json) {
  if (!json.is_object()) return nullptr;
  const auto metadata = json.find("metadata");
  if (metadata == json.end() || !metadata->is_object()) return nullptr;
  Object object;
  object.key = {Namespace(text_of(*metadata, "namespace")), text_of(*metadata, "name")};
  object.uid = text_of(*metadata, "uid");
  object.resource_version = text_of(*metadata, "resourceVersion");
  if (object.key.name.empty() || object.resource_version.empty()) return nullptr;
  object.json = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return std::make_shared<const Object>(std::move(object));
}

Result<Event> malformed(std::string_view why) {
  return fail(Remedy::kRetryLater, "the API server sent a watch event that is malformed: " + std::string(why));
}

Result<Event> parse_event(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return malformed("no JSON object");
  const std::string type = text_of(json, "type");
  const auto payload = json.find("object");
  if (payload == json.end() || !payload->is_object()) return malformed("no object in it");
  Event event;
  if (type == "ERROR") {
    const auto code = payload->find("code");
    event.error_code = code != payload->end() && code->is_number_integer() ? code->get<int>() : 0;
    event.error_message = text_of(*payload, "message");
    return event;
  }
  if (type == "BOOKMARK") {
    event.type = Event::Type::kBookmark;
    const auto metadata = payload->find("metadata");
    if (metadata != payload->end() && metadata->is_object()) {
      event.resource_version = text_of(*metadata, "resourceVersion");
    }
    return event.resource_version.empty() ? malformed("a bookmark without a version") : Result<Event>(event);
  }
  if (type == "DELETED")
    event.type = Event::Type::kDeleted;
  else if (type == "ADDED" || type == "MODIFIED")
    event.type = Event::Type::kUpsert;
  else
    return malformed("unknown type");
  event.object = object_of(*payload);
  if (!event.object) return malformed("no metadata.name or resourceVersion");
  event.resource_version = event.object->resource_version;
  return event;
}

}  // namespace

Result<std::vector<Event>> EventStream::feed(std::string_view bytes) {
  std::vector<Event> events;
  while (!bytes.empty()) {
    const size_t end = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, end);
    if (partial_.size() + piece.size() > line_bytes_max_) {
      return fail(Remedy::kRetryLater, "the API server sent a watch event larger than the limit of " +
                                           std::to_string(line_bytes_max_) + " bytes");
    }
    partial_ += piece;
    if (end == std::string_view::npos) break;
    bytes.remove_prefix(end + 1);
    if (partial_.empty()) continue;
    NEZHA_TRY(Event event, parse_event(partial_));
    events.push_back(std::move(event));
    partial_.clear();
  }
  return events;
}

Result<ListPage> parse_list_page(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  const auto bad = [](const char* why) {
    return fail(Remedy::kRetryLater, std::string("the API server sent a list that is malformed: ") + why);
  };
  if (!json.is_object()) return bad("no JSON object");
  const auto metadata = json.find("metadata");
  if (metadata == json.end() || !metadata->is_object()) return bad("no metadata");
  ListPage page;
  page.resource_version = text_of(*metadata, "resourceVersion");
  page.next = text_of(*metadata, "continue");
  if (page.resource_version.empty()) return bad("no resourceVersion");
  const auto items = json.find("items");
  if (items == json.end() || items->is_null()) return page;
  if (!items->is_array()) return bad("items is no list");
  for (const Json& item : *items) {
    auto object = object_of(item);
    if (!object) return bad("an item without metadata.name or resourceVersion");
    page.items.push_back(std::move(object));
  }
  return page;
}

}  // namespace nezha::k8s
