// Status: what the annotation nezha.io/status says, as a value; text <-> Status.
// Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nezha::webhook {

struct Status {
  std::vector<std::string> rules;
  std::string mode;
  std::vector<std::string> hosts;    // at most limits::kStatusHostsMax
  size_t hosts_more = 0;             // aliased, but not listed
  std::vector<std::string> reasons;  // at most limits::kStatusReasonsMax
};

// Compact JSON, the keys always in the same order. REQUIRES: strings are UTF-8.
std::string write_status(const Status& status);
// Nothing when the text is not a status that write_status could have written.
std::optional<Status> read_status(std::string_view text);

// The status of this run joined to that of an earlier one (another entry of the webhook configuration may have run
// before): earlier items keep their place, so that running any entry again changes nothing.
Status join(Status earlier, const Status& now);

}  // namespace nezha::webhook
