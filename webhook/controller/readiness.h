// Readiness: named conditions that must all hold before the webhook takes calls, and words for what is missing.
// Threads: any.
#pragma once

#include <map>
#include <mutex>
#include <string>

namespace nezha::webhook {

class Readiness {
 public:
  // `missing`: empty when the condition holds, else what is missing and what to do. True: that changed.
  bool set(const std::string& condition, const std::string& missing);

  // Something that is wrong but does not stop the webhook from serving; empty: nothing. True: that changed.
  bool note(const std::string& topic, const std::string& text);

  bool ready() const;
  // A line each: "not   NAME: what is missing", then "warn  TOPIC: text", then "ok    NAME".
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> missing_;  // by condition
  std::map<std::string, std::string> notes_;    // by topic
};

}  // namespace nezha::webhook
