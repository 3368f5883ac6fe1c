// A JSON Patch applier written for the tests from RFC 6902 and RFC 6901 alone, so that a patch is proved by code that
// shares nothing with the product's library.
#pragma once

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace nezha::test {

struct PatchError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws PatchError when an operation is malformed, or does not fit the document.
nlohmann::json apply_rfc6902(nlohmann::json document, const nlohmann::json& patch);

}  // namespace nezha::test
