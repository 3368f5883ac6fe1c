// Any bytes -> one JSON string or one word. See json_text.h.
#include "src/obs/json_text.h"

#include <algorithm>
#include <cstdint>

#include "nezha/base/text.h"

namespace nezha::obs {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

void append_escaped(std::string& out, char c) {
  constexpr char kHex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  if (static_cast<uint8_t>(c) >= 0x20 && c != 0x7F) {
    out += c;
    return;
  }
  out += "\\u00";
  out += kHex[static_cast<uint8_t>(c) >> 4];
  out += kHex[c & 0xF];
}

bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./:@%+,~?&*()[]<>#;!").find(c) != std::string_view::npos;
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text, i);
    if (length == 0) {
      out += kReplacement;
    } else if (length == 1) {
      append_escaped(out, text[i]);
    } else {
      out += text.substr(i, length);
    }
    i += std::max<size_t>(length, 1);
  }
  out += '"';
}

void append_plain_or_quoted(std::string& out, std::string_view text) {
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_word_char)) {
    out += text;
  } else {
    append_json_string(out, text);
  }
}

}  // namespace nezha::obs
