// The media there are; make_medium() in medium.h chooses. Threads: any.
#pragma once

#include <memory>
#include <string>

#include "cache/tier/medium.h"

namespace nezha::cache {

Result<std::unique_ptr<Medium>> make_file_medium(const std::string& path);
Result<std::unique_ptr<Medium>> make_pmem_medium(const std::string& path);
std::unique_ptr<Medium> make_memory_medium();

}  // namespace nezha::cache
