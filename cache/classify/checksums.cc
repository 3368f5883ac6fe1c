#include "cache/classify/checksums.h"

#include <algorithm>

#include "nezha/base/text.h"

namespace nezha::cache {
namespace {

constexpr std::string_view kPrefix = "x-amz-checksum-";
constexpr std::string_view kEnabled = "ENABLED";  // the only value there is

bool is_mode(const std::pair<std::string, std::string>& entry) { return entry.first == kChecksumMode; }

auto without_mode(std::vector<std::pair<std::string, std::string>> selecting) {
  std::erase_if(selecting, is_mode);
  return selecting;
}

}  // namespace

bool is_s3_checksum(std::string_view field_name) { return iequals(field_name.substr(0, kPrefix.size()), kPrefix); }

bool asks_for_checksums(const http::Fields& request) {
  return !request.has("Range") && iequals(trim(request.find(kChecksumMode).value_or("")), kEnabled);
}

void note_checksum_mode(StoredHead& head, const http::Fields& request) {
  std::erase_if(head.selecting, is_mode);
  if (asks_for_checksums(request)) head.selecting.emplace_back(kChecksumMode, kEnabled);
}

bool has_checksums(const StoredHead& head) {
  return std::any_of(head.selecting.begin(), head.selecting.end(),
                     [](const auto& entry) { return is_mode(entry) && !entry.second.empty(); });
}

std::string lines_without_checksums(const StoredHead& head) {
  std::string out;
  for (const auto line : split(head.lines, '\n')) {
    if (!line.empty() && !is_s3_checksum(line)) out.append(line).append("\n");
  }
  return out;
}

bool same_variant(const StoredHead& a, const StoredHead& b) {
  return without_mode(a.selecting) == without_mode(b.selecting);
}

void take_over_checksums(StoredHead& head, const StoredHead& other) {
  if (has_checksums(head) || !has_checksums(other)) return;
  std::erase_if(head.selecting, is_mode);
  head.selecting.emplace_back(kChecksumMode, kEnabled);
  other.fields.for_each([&](std::string_view name, std::string_view value) {
    if (is_s3_checksum(name) && !head.fields.has(name)) head.fields.add(name, value);
  });
  complete(head);
}

}  // namespace nezha::cache
