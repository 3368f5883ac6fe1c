#include "webhook/controller/readiness.h"

#include <algorithm>

namespace nezha::webhook {

namespace {

bool assign(std::map<std::string, std::string>& texts, const std::string& key, const std::string& text) {
  const auto [entry, is_new] = texts.try_emplace(key, text);
  if (is_new) return true;
  if (entry->second == text) return false;
  entry->second = text;
  return true;
}

}  // namespace

bool Readiness::set(const std::string& condition, const std::string& missing) {
  std::lock_guard lock(mutex_);
  return assign(missing_, condition, missing);
}

bool Readiness::note(const std::string& topic, const std::string& text) {
  std::lock_guard lock(mutex_);
  return assign(notes_, topic, text);
}

bool Readiness::ready() const {
  std::lock_guard lock(mutex_);
  return std::all_of(missing_.begin(), missing_.end(), [](const auto& entry) { return entry.second.empty(); });
}

std::string Readiness::text() const {
  std::lock_guard lock(mutex_);
  std::string bad, warnings, good;
  for (const auto& [condition, missing] : missing_) {
    if (missing.empty())
      good += "ok    " + condition + "\n";
    else
      bad += "not   " + condition + ": " + missing + "\n";
  }
  for (const auto& [topic, text] : notes_) {
    if (!text.empty()) warnings += "warn  " + topic + ": " + text + "\n";
  }
  return bad + warnings + good;
}

}  // namespace nezha::webhook
