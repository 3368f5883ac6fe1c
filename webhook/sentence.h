// Pieces of the sentences that users read in warnings and in nezha.io/status.
// Pure. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nezha::webhook {

// At most `bytes` of the text, cut between two UTF-8 characters and marked by "...". REQUIRES: bytes >= 3.
std::string shortened(std::string_view text, size_t bytes);

// Text of the user's in quotes: shortened, control characters as "?".
std::string quoted(std::string_view text);

// "a, b, c, d, e and 7 more"
std::string listed(const std::vector<std::string>& names);

}  // namespace nezha::webhook
