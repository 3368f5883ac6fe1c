// What a YAML scalar means without quotes, to kubectl's reader (YAML 1.1 without y and n).
// Pure. Threads: any.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace nezha::cli {

// The JSON value of a plain scalar: null, a boolean, a number, or the text itself.
// JSON has no infinity: those spellings give a "discarded" value.
nlohmann::ordered_json plain_value(const std::string& text);

// Whether the text may stand without quotes and still be a string to every YAML reader, 1.1 or 1.2.
bool is_plain_string(const std::string& text);

}  // namespace nezha::cli
