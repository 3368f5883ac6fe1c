// Objects that exist by name: "/o/SIZE/NAME" has SIZE bytes, and each byte follows from NAME and its position.
// The origin generates them, the bare server keeps them, the client checks them. Immutable after the first call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nezha::bench {

inline constexpr uint64_t kPieceMax = 1'000'000;  // the longest piece bytes_at() gives

struct Object {
  uint64_t size_bytes = 0;
  uint64_t seed = 0;  // of the whole path: two paths never share their bytes by accident
};

// Nothing when the path is not of this form.
std::optional<Object> object_of(std::string_view path);

// The bytes from `offset` on, at most `size_max` and kPieceMax of them. They live as long as the program.
std::string_view bytes_at(const Object& object, uint64_t offset, uint64_t size_max);

// A strong entity tag, with its quotes.
std::string etag_of(const Object& object);

}  // namespace nezha::bench
