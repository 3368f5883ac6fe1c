#include "nezha/s3/delete_request.h"

#include <cstdint>

#include "src/s3/xml.h"

namespace nezha::s3 {
Result<std::vector<ObjectKey>> parse_delete_request(std::string_view xml) {
  pugi::xml_document document;
  const auto parsed = document.load_buffer(xml.data(), xml.size(), kParseOptions);
  if (!parsed) return fail(Remedy::kFixInput, std::string("not XML: ") + parsed.description());
  const pugi::xml_node root = document.document_element();
  if (local_name(root) != "Delete") return fail(Remedy::kFixInput, "no Delete document");
  std::vector<ObjectKey> keys;
  for (const auto& object : root) {
    if (local_name(object) != "Object") continue;
    for (const auto& part : object) {
      if (local_name(part) == "Key") keys.emplace_back(text_of(part));
    }
  }
  return keys;
}

Result<std::string> decode_aws_chunked(std::string_view body) {
  const auto bad = [] { return fail(Remedy::kFixInput, "the body is not aws-chunked"); };
  std::string out;
  for (;;) {
    const size_t line = body.find("\r\n");
    if (line == std::string_view::npos) return bad();
    std::string_view size_text = body.substr(0, std::min(line, body.find(';')));
    uint64_t size = 0;
    if (size_text.empty() || size_text.size() > 15) return bad();
    for (const char c : size_text) {
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return bad();
      size = size * 16 + static_cast<uint64_t>(digit);
    }
    body.remove_prefix(line + 2);
    if (size == 0) return out;
    if (body.size() < size + 2 || body.substr(size, 2) != "\r\n") return bad();
    out += body.substr(0, size);
    body.remove_prefix(size + 2);
  }
}

}  // namespace nezha::s3
