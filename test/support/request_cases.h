// Raw request heads and what they mean: one table for the parser (test/unit/http) and for the running proxy
// (test/http), each replayed at many fragment sizes. Threads: any.
#pragma once

#include <string>
#include <vector>

#include "nezha/http/message.h"

namespace nezha::test {

struct RequestCase {
  std::string name;
  std::string bytes;           // the head; bodies are the caller's
  int status = 0;              // of the refusal; 0: accepted
  std::string method, target;  // when accepted
  http::Framing framing{};
  bool keep_alive = true;
  bool served = true;  // accepted by the parser and forwarded by the proxy
};

std::vector<RequestCase> request_cases();

// Runs of a table at every fragment size are many for long inputs: all sizes up to 64, then a few.
std::vector<size_t> fragment_sizes(size_t bytes);

}  // namespace nezha::test
