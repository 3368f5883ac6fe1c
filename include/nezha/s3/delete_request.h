// The body of DeleteObjects (POST /BUCKET?delete): which keys it names. Pure.
// Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/s3/object.h"

namespace nezha::s3 {

// Any bytes may be given. Fails with kFixInput: no `Delete` document.
Result<std::vector<ObjectKey>> parse_delete_request(std::string_view xml);

// The payload of a body in Content-Encoding aws-chunked: SIZE[;chunk-signature=…] CRLF bytes CRLF, until size 0;
// trailers are left out, signatures not checked. Fails with kFixInput: it is not of that form, or not whole.
Result<std::string> decode_aws_chunked(std::string_view body);

}  // namespace nezha::s3
