#include "webhook/controller/timestamp.h"

#include <ctime>

namespace nezha::webhook {
namespace {
constexpr const char* kFormat = "%Y-%m-%dT%H:%M:%SZ";
}

std::string to_timestamp(WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const size_t size = std::strftime(text, sizeof text, kFormat, &parts);
  return std::string(text, size);
}

std::optional<WallTime> parse_timestamp(const std::string& text) {
  std::tm parts{};
  const char* end = strptime(text.c_str(), kFormat, &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

}  // namespace nezha::webhook
