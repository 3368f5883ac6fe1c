// EventStream: the body of a watch, in pieces of any size -> events. And: the JSON of one list page -> objects. Pure.
// A line that is no event gives an error and ends the stream; it never crashes.
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/k8s/watch.h"

namespace nezha::k8s {

struct Event {
  enum class Type { kUpsert, kDeleted, kBookmark, kError };
  Type type = Type::kError;
  std::shared_ptr<const Object> object;  // kUpsert, kDeleted
  std::string resource_version;          // all but kError
  int error_code = 0;                    // kError
  std::string error_message;
};

class EventStream {
 public:
  explicit EventStream(size_t line_bytes_max) : line_bytes_max_(line_bytes_max) {}

  // The events that `bytes` completes, in order. After a failure the stream is not used again.
  [[nodiscard]] Result<std::vector<Event>> feed(std::string_view bytes);

 private:
  const size_t line_bytes_max_;
  std::string partial_;
};

struct ListPage {
  std::vector<std::shared_ptr<const Object>> items;
  std::string resource_version;
  std::string next;  // metadata.continue
};

[[nodiscard]] Result<ListPage> parse_list_page(std::string_view json);

}  // namespace nezha::k8s
