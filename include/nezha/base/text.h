// Small, pure helpers on ASCII text. Protocol text is ASCII: nothing here depends on the locale.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nezha {

std::string to_lower(std::string_view text);
bool iequals(std::string_view a, std::string_view b);                        // case-insensitive, ASCII
std::string_view trim(std::string_view text);                                // spaces and tabs at both ends
std::vector<std::string_view> split(std::string_view text, char separator);  // pieces borrow from text; empty ones kept

// The whole text as a decimal number; nothing for an empty text, a sign, other characters or an overflow.
std::optional<uint64_t> parse_decimal(std::string_view text);

// "64Mi", "2G", "1048576", "0.5Gi" -> bytes (Kubernetes quantity suffixes k M G T P E, Ki Mi Gi Ti Pi Ei).
std::optional<uint64_t> parse_size_bytes(std::string_view text);

// "30s", "5m", "24h", "7d", "90" (seconds) -> seconds.
std::optional<int64_t> parse_duration_s(std::string_view text);

// RFC 1123 subdomain, lower case, as Kubernetes asks of hostAliases: labels of [a-z0-9-], at most 253 characters.
bool is_dns1123_subdomain(std::string_view text);

// Length of the UTF-8 sequence that begins at `at` (RFC 3629: no overlong forms, no surrogates), 0 if there is none.
size_t utf8_length(std::string_view text, size_t at);

// At most `bytes_max` bytes of the text for a message of one line, then "…" if something was cut: control characters
// become '?', bytes that are not UTF-8 become U+FFFD.
std::string printable(std::string_view text, size_t bytes_max);

// The canonical text of an IPv4 or IPv6 address, or nothing.
std::optional<std::string> canonical_ip(std::string_view text);

}  // namespace nezha
