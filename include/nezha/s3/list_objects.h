// One page of ListObjectsV2 (Amazon S3 API reference). Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/s3/object.h"

namespace nezha::s3 {

struct ListedObject {
  ObjectKey key;
  uint64_t size_bytes = 0;
};

struct ObjectPage {
  std::vector<ListedObject> objects;
  std::string continuation_token;  // of the next page; empty on the last one
};

// Keys are percent-decoded where the page says that they are encoded (EncodingType url). Fails with kFixInput: no XML,
// or no such document.
Result<ObjectPage> parse_object_page(std::string_view xml);

// The query that asks for a page, in canonical order: everything encoded, keys asked for percent-encoded.
std::string object_page_query(std::string_view prefix, std::string_view continuation_token);

}  // namespace nezha::s3
