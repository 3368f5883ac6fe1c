// The cache's Service as JSON -> its cluster IPs. Pure.
// Threads: any.
#pragma once

#include <string_view>
#include <vector>

#include "nezha/base/named.h"

namespace nezha::webhook {

// In the Service's order, canonical; a headless Service ("None"), one not assigned yet and garbage give none.
std::vector<IpAddress> cluster_ips(std::string_view service_json);

}  // namespace nezha::webhook
