#include "nezha/s3/list_objects.h"

#include <algorithm>

#include "nezha/base/text.h"
#include "src/s3/percent.h"
#include "src/s3/xml.h"

namespace nezha::s3 {
namespace {

// Form encoding, as S3 has it here: '+' is a blank.
std::string decoded_key(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  return percent_decode(text);
}

ListedObject read_object(const pugi::xml_node& contents, bool is_encoded) {
  ListedObject out;
  for (const auto& part : contents) {
    if (local_name(part) == "Key") out.key = ObjectKey(is_encoded ? decoded_key(text_of(part)) : text_of(part));
    if (local_name(part) == "Size") out.size_bytes = parse_decimal(trim(text_of(part))).value_or(0);
  }
  return out;
}

}  // namespace

Result<ObjectPage> parse_object_page(std::string_view xml) {
  pugi::xml_document document;
  const auto parsed = document.load_buffer(xml.data(), xml.size(), kParseOptions);
  if (!parsed) return fail(Remedy::kFixInput, std::string("not XML: ") + parsed.description());
  const pugi::xml_node root = document.document_element();
  if (local_name(root) != "ListBucketResult") return fail(Remedy::kFixInput, "no ListBucketResult document");
  const auto value = [&](std::string_view name) -> std::string {
    for (const auto& part : root) {
      if (local_name(part) == name) return text_of(part);
    }
    return "";
  };
  const bool is_encoded = value("EncodingType") == "url";
  ObjectPage out;
  for (const auto& part : root) {
    if (local_name(part) == "Contents") out.objects.push_back(read_object(part, is_encoded));
  }
  if (value("IsTruncated") == "true") {
    out.continuation_token = value("NextContinuationToken");
    if (out.continuation_token.empty()) return fail(Remedy::kFixInput, "a page that is not the last names no next one");
  }
  return out;
}

std::string object_page_query(std::string_view prefix, std::string_view continuation_token) {
  std::string out;
  if (!continuation_token.empty()) out += "continuation-token=" + percent_encode(continuation_token, "") + "&";
  return out + "encoding-type=url&list-type=2&prefix=" + percent_encode(prefix, "");
}

}  // namespace nezha::s3
