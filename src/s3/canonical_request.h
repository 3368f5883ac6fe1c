// The canonical request of SigV4: the text that both sides make of a request and sign. sigv4.h says by which rules.
// Private to src/s3. Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/http/message.h"

namespace nezha::s3 {

struct Parameter {
  std::string name, value;  // decoded
};

// A request target, taken apart. Views borrow from the target.
struct Target {
  std::string_view authority;  // of absolute form, else empty
  std::string_view path;       // raw; "/" where absolute form has none
  std::vector<Parameter> query;
  bool decodable = true;  // every '%' has two hexadecimal digits behind it
};

// Nothing: neither origin form nor absolute form.
std::optional<Target> split_target(std::string_view target);

// REQUIRES: every one of `signed_headers` (lower case) is among the head's fields.
// `presigned`: X-Amz-Signature does not count.
std::string canonical_request(const http::RequestHead& head, const Target& target, bool presigned,
                              const std::vector<std::string>& signed_headers, std::string_view payload_hash);

// What is signed at last: algorithm, date, scope and the canonical request's hash.
std::string string_to_sign(std::string_view amz_date, std::string_view scope, std::string_view canonical_request);

// "host;range;x-amz-date"
std::string joined_names(const std::vector<std::string>& names);

}  // namespace nezha::s3
