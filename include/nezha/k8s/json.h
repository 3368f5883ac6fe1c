// JSON documents as raw trees. Every field is kept, known or not; integers stay exact.
// Threads: any; a Document is immutable.
#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "nezha/base/result.h"

namespace nezha::k8s {

using Document = std::shared_ptr<const nlohmann::json>;  // never null

// How deep lists and objects nest; 0 for a scalar. Brackets inside strings do not count. Text that is no JSON gives
// some number.
size_t nesting_of(std::string_view text);

// Fails with kFixInput: not JSON (the message says at which byte), or nested deeper than `nesting_max`, which is
// found before anything is built.
[[nodiscard]] Result<Document> parse_json(std::string_view text, size_t nesting_max);

}  // namespace nezha::k8s
