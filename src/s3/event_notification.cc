#include "nezha/s3/event_notification.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace nezha::s3 {
namespace {

using nlohmann::json;

constexpr int kEnvelopesMax = 3;

std::string text_at(const json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const json& at(const json& object, const char* name) {
  static const json kNothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() ? *found : kNothing;
}

// "s3:ObjectCreated:Put", "ObjectRemoved:Delete", "Object Created".
bool is_news(std::string_view event) {
  for (const auto part : {"ObjectCreated", "ObjectRemoved", "ObjectRestore", "LifecycleExpiration", "ObjectLifecycle",
                          "ObjectSynced", "Replication", "Object Created", "Object Deleted", "Object Restore"}) {
    if (event.find(part) != std::string_view::npos) return true;
  }
  return false;
}

std::string query_decode(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  return percent_decode(text);
}

void add(std::vector<ObjectName>& out, const std::string& bucket, std::string key) {
  if (bucket.empty() || key.empty()) return;
  ObjectName name{BucketName(bucket), ObjectKey(std::move(key))};
  if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
}

Result<EventObjects> read_records(const json& records) {
  EventObjects out;
  if (!records.is_array()) return fail(Remedy::kFixInput, "Records is no list");
  for (const json& record : records) {
    if (!is_news(text_at(record, "eventName"))) continue;
    const json& s3 = at(record, "s3");
    const std::string bucket = text_at(at(s3, "bucket"), "name"), key = text_at(at(s3, "object"), "key");
    if (bucket.empty() || key.empty()) {
      ++out.not_understood;
      continue;
    }
    add(out.named, bucket, query_decode(key));
    add(out.named, bucket, key);
  }
  if (out.named.empty() && out.not_understood > 0)
    return fail(Remedy::kFixInput, "a record names no s3.bucket.name or s3.object.key");
  return out;
}

Result<json> parse(std::string_view text) {
  // No bytes of the text in the message: it may hold more than names.
  json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) return fail(Remedy::kFixInput, "the body is not JSON");
  return document;
}

}  // namespace

Result<EventObjects> parse_event_notification(std::string_view text) {
  EventObjects out;
  NEZHA_TRY(json document, parse(text));
  for (int envelope = 0; envelope < kEnvelopesMax && document.is_object(); ++envelope) {
    if (document.contains("Records")) return read_records(document["Records"]);
    if (text_at(document, "Event") == "s3:TestEvent") return out;
    if (document.contains("detail")) {
      const json& detail = document["detail"];
      const std::string bucket = text_at(at(detail, "bucket"), "name"), key = text_at(at(detail, "object"), "key");
      if (bucket.empty() || key.empty()) return fail(Remedy::kFixInput, "detail names no bucket.name or object.key");
      if (is_news(text_at(document, "detail-type"))) add(out.named, bucket, key);
      return out;
    }
    if (text_at(document, "Type") != "Notification") break;
    NEZHA_TRY(json inner, parse(text_at(document, "Message")));
    document = std::move(inner);
  }
  return fail(Remedy::kFixInput, "no event notification of S3: there is neither Records nor detail");
}

}  // namespace nezha::s3
