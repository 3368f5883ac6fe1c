// The command line of the programs of bench/: "--name value" pairs, nothing else.
#pragma once

#include <cerrno>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/sockets.h"

namespace nezha::bench {

class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2) values_[argv[i]].push_back(argv[i + 1]);
    errno = EINVAL;
    if (argc % 2 == 0) die("arguments are --name value pairs");
  }

  std::string text(const std::string& name, const std::string& otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : found->second.back();
  }

  uint64_t number(const std::string& name, uint64_t otherwise) const {
    const auto found = values_.find(name);
    return found == values_.end() ? otherwise : std::stoull(found->second.back());
  }

  std::vector<std::string> all(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? std::vector<std::string>() : found->second;
  }

 private:
  std::map<std::string, std::vector<std::string>> values_;
};

}  // namespace nezha::bench
