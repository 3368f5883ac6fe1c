// Just enough of an HTTP/1.1 request's head for a benchmark: the method, the path and a few fields, from well-formed
// text. Views borrow the text.
#pragma once

#include <strings.h>

#include <string_view>

namespace nezha::bench {

// The size of the first head in `text`, its empty line included; 0 when it is not complete.
inline size_t head_size(std::string_view text) {
  const size_t end = text.find("\r\n\r\n");
  return end == std::string_view::npos ? 0 : end + 4;
}

inline std::string_view method_of(std::string_view head) { return head.substr(0, head.find(' ')); }

inline std::string_view path_of(std::string_view head) {
  const size_t begin = head.find(' ') + 1;
  return head.substr(begin, head.find(' ', begin) - begin);
}

// The field's value without blanks around it; empty when there is none. `name` ends with a colon.
inline std::string_view field_of(std::string_view head, std::string_view name) {
  for (size_t at = head.find("\r\n"); at + 2 < head.size(); at = head.find("\r\n", at + 2)) {
    const std::string_view line = head.substr(at + 2, head.find("\r\n", at + 2) - at - 2);
    if (line.size() < name.size() || ::strncasecmp(line.data(), name.data(), name.size()) != 0) continue;
    std::string_view value = line.substr(name.size());
    while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
    while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
    return value;
  }
  return {};
}

}  // namespace nezha::bench
