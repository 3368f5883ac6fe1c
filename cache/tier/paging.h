// paging: bringing pages of a mapped file into memory, asking whether they are there, writing them out.
// Offsets need not be aligned. Threads: any.
#pragma once

#include <cstdint>

#include "nezha/base/result.h"

namespace nezha::cache::paging {

// Waits until the bytes are in memory and mapped. `file` serves kernels before 5.14, which cannot populate; -1: none.
// Fails with kGiveUp where touching the mapping would have been a signal.
Result<void> load(char* mapping, uint64_t offset_bytes, uint64_t size_bytes, int file);
// Only starts it.
void prefetch(char* mapping, uint64_t offset_bytes, uint64_t size_bytes);
bool is_resident(char* mapping, uint64_t offset_bytes, uint64_t size_bytes);
Result<void> sync(char* mapping, uint64_t offset_bytes, uint64_t size_bytes);

}  // namespace nezha::cache::paging
