// The commands: inject and explain, which need no cluster, and status, for which kubectl asks one. Options in, text
// and exit status out.
// Threads: one.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "cli/manifest.h"

namespace nezha::cli {

struct OfflineOptions {
  std::vector<std::string> configs;  // files; "-" is standard input
  std::string manifest;              // file; "-" is standard input
  std::string name_space;            // empty: not given
  std::string namespace_labels;      // "k=v,k=v"
  std::optional<Format> output;      // of inject; absent: the input's own
};

// Each returns the exit status: 0, or 2 for bad input with one line on `err`.
int run_inject(const OfflineOptions& options, std::ostream& out, std::ostream& err);
int run_explain(const OfflineOptions& options, std::ostream& out, std::ostream& err);

// `list`: a file with what kubectl printed, "-" is standard input; empty: kubectl is run. 1 when pods were missed.
int run_status(const std::string& list, std::ostream& out, std::ostream& err);

}  // namespace nezha::cli
