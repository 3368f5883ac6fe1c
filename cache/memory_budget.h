// How much memory this process may use: the cgroup's limit (v2 or v1), else the machine's.
// Reads /sys/fs/cgroup and /proc once. Threads: any.
#pragma once

#include <cstdint>

namespace nezha::cache {

uint64_t memory_limit_bytes();

}  // namespace nezha::cache
