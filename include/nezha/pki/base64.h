// Base64 as Kubernetes writes Secrets and CA bundles: the standard alphabet, padded, on one line.
// Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "nezha/base/result.h"

namespace nezha::pki {

std::string base64_encode(std::string_view bytes);
// kFixInput: not Base64. Spaces and line ends are not accepted.
[[nodiscard]] Result<std::string> base64_decode(std::string_view text);

}  // namespace nezha::pki
