// Text for one log line: any bytes in, printable and unambiguous text out.
// Threads: any. Pure.
#pragma once

#include <string>
#include <string_view>

namespace nezha::obs {

// Appends `text` to `out` as a JSON string with its quotes. Control characters are escaped; bytes that are not UTF-8
// become U+FFFD, so that the result is valid JSON whatever a client sent.
void append_json_string(std::string& out, std::string_view text);

// Appends `text` as it is when it is a plain word, else as a JSON string: `a=1` and `b="two words"`.
void append_plain_or_quoted(std::string& out, std::string_view text);

}  // namespace nezha::obs
