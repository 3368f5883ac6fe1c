// What an answer of the API server that is no success means to the caller. Pure.
// Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "nezha/base/result.h"

namespace nezha::k8s {

Remedy remedy_of_status(int status);

// `call` names the request ("GET /api/v1/..."); `body` is usually a Status object, whose message is quoted.
Error error_of_answer(std::string_view call, int status, std::string_view body);

// Whether the body of a 409 says that the object to create is there already, and not some other conflict.
bool is_already_exists(std::string_view body);

}  // namespace nezha::k8s
