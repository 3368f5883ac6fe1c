// run_program: a command as a shell sees it: its exit status and what it says.
// Threads: any.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <string>

namespace nezha::test {

struct Outcome {
  int status = -1;
  std::string output;  // standard output and standard error
};

inline Outcome run_program(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  Outcome outcome;
  std::array<char, 4096> buffer;
  while (const size_t bytes = std::fread(buffer.data(), 1, buffer.size(), pipe))
    outcome.output.append(buffer.data(), bytes);
  const int status = ::pclose(pipe);
  outcome.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

}  // namespace nezha::test
