// Event notifications of S3: which objects they say were written or removed. Pure.
// Understood: the Records of AWS, MinIO and Ceph, with or without an SNS envelope, and AWS EventBridge's form. Others
// than creations, removals, restores and expirations are no news about an object's bytes, and name nothing here.
// Threads: any.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "nezha/base/result.h"
#include "nezha/s3/object.h"

namespace nezha::s3 {

struct EventObjects {
  std::vector<ObjectName> named;
  size_t not_understood = 0;  // records that tell of news, but not about which object
};

// Records' keys are URL-encoded by AWS and MinIO and plain from Ceph, and nothing tells which: a key that could be read
// both ways is named both ways. A test event names nothing.
// Fails with kFixInput: not JSON, of another form, or none of its news is understood.
Result<EventObjects> parse_event_notification(std::string_view json);

}  // namespace nezha::s3
