#include "src/s3/canonical_request.h"

#include <algorithm>
#include <utility>

#include "nezha/base/text.h"
#include "nezha/s3/object.h"
#include "nezha/s3/sha256.h"
#include "src/s3/percent.h"

namespace nezha::s3 {
namespace {

bool escapes_are_whole(std::string_view text) {
  for (size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 3)) {
    if (at + 2 >= text.size() || hex_value(text[at + 1]) < 0 || hex_value(text[at + 2]) < 0) return false;
  }
  return true;
}

std::string decode_form(std::string_view text) {
  std::string blanks(text);
  std::replace(blanks.begin(), blanks.end(), '+', ' ');
  return percent_decode(blanks);
}

std::vector<Parameter> parameters_of(std::string_view query) {
  std::vector<Parameter> out;
  for (const auto piece : split(query, '&')) {
    if (piece.empty()) continue;
    const size_t equals = std::min(piece.find('='), piece.size());
    const auto value = equals < piece.size() ? piece.substr(equals + 1) : std::string_view{};
    out.push_back({decode_form(piece.substr(0, equals)), decode_form(value)});
  }
  return out;
}

std::string canonical_query(const std::vector<Parameter>& query, bool presigned) {
  std::vector<std::pair<std::string, std::string>> encoded;
  for (const auto& [name, value] : query) {
    if (presigned && iequals(name, "X-Amz-Signature")) continue;
    encoded.emplace_back(percent_encode(name, ""), percent_encode(value, ""));
  }
  std::sort(encoded.begin(), encoded.end());
  std::string out;
  for (const auto& [name, value] : encoded) {
    if (!out.empty()) out += '&';
    out += name + '=' + value;
  }
  return out;
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Trimmed, and each run of white space inside one blank.
void append_collapsed(std::string& out, std::string_view value) {
  bool begun = false, gap = false;
  for (const char c : value) {
    if (is_space(c)) {
      gap = begun;
      continue;
    }
    if (gap) out += ' ';
    out += c;
    begun = true;
    gap = false;
  }
}

void append_header(std::string& out, const http::RequestHead& head, const Target& target, std::string_view name) {
  out += name;
  out += ':';
  if (name == "host" && !target.authority.empty()) {
    out += target.authority;
  } else {
    bool first = true;
    head.fields.for_each([&](std::string_view field, std::string_view value) {
      if (!iequals(field, name)) return;
      if (!std::exchange(first, false)) out += ',';
      append_collapsed(out, value);
    });
  }
  out += '\n';
}

}  // namespace

std::optional<Target> split_target(std::string_view target) {
  Target out;
  out.decodable = escapes_are_whole(target);
  if (!target.starts_with('/')) {
    const size_t scheme = target.find("://");
    if (scheme == std::string_view::npos) return std::nullopt;
    const auto name = target.substr(0, scheme);
    if (!iequals(name, "http") && !iequals(name, "https")) return std::nullopt;
    target.remove_prefix(scheme + 3);
    const size_t end = std::min(target.find_first_of("/?"), target.size());
    out.authority = target.substr(0, end);
    if (out.authority.empty()) return std::nullopt;
    target.remove_prefix(end);
  }
  const size_t question = std::min(target.find('?'), target.size());
  out.path = question == 0 ? "/" : target.substr(0, question);
  if (question < target.size()) out.query = parameters_of(target.substr(question + 1));
  return out;
}

std::string joined_names(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) {
    if (!out.empty()) out += ';';
    out += name;
  }
  return out;
}

std::string canonical_request(const http::RequestHead& head, const Target& target, bool presigned,
                              const std::vector<std::string>& signed_headers, std::string_view payload_hash) {
  std::string out = head.method + '\n' + percent_encode(percent_decode(target.path), "/") + '\n' +
                    canonical_query(target.query, presigned) + '\n';
  for (const auto& name : signed_headers) append_header(out, head, target, name);
  out += '\n' + joined_names(signed_headers) + '\n';
  out += payload_hash;
  return out;
}

std::string string_to_sign(std::string_view amz_date, std::string_view scope, std::string_view canonical_request) {
  std::string out = "AWS4-HMAC-SHA256\n";
  out.append(amz_date) += '\n';
  out.append(scope) += '\n';
  return out + sha256_hex(canonical_request);
}

}  // namespace nezha::s3
