// Bodies made of several sources: one after the other, or as the parts of multipart/byteranges (RFC 9110 §14.6).
// Threads: the reader's loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cache/deliver/body_source.h"
#include "cache/store/store.h"

namespace nezha::cache {

// Each to its end; a failure of one is the whole's.
std::unique_ptr<BodySource> make_chain_source(std::vector<std::unique_ptr<BodySource>> sources);

struct Multipart {
  std::string content_type;  // of the whole: multipart/byteranges with its boundary
  uint64_t size_bytes = 0;
  std::unique_ptr<BodySource> body;
};
// `part_type`: the representation's own Content-Type, may be empty.
// REQUIRES: `parts` is not empty.
Multipart make_multipart(Store& store, std::vector<PinnedBody> parts, std::optional<uint64_t> total_bytes,
                         std::string_view part_type);

}  // namespace nezha::cache
