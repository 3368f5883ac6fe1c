// Log: one line per event, as text or JSON, on standard error. spdlog stays behind this header.
// Fields are key/value pairs; a value is escaped, never interpreted. Secrets, signatures and query strings of
// presigned URLs are never passed in: callers log the redacted form.
// Threads: any.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace nezha::obs {

enum class Level { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

using Field = std::pair<std::string_view, std::string_view>;

class Log {
 public:
  virtual ~Log() = default;
  // Lines below the configured level are dropped.
  virtual void write(Level level, std::string_view message, std::initializer_list<Field> fields = {}) = 0;

  void debug(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kDebug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kInfo, message, fields);
  }
  void warning(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kWarning, message, fields);
  }
  void error(std::string_view message, std::initializer_list<Field> fields = {}) {
    write(Level::kError, message, fields);
  }
};

// Writes to standard error.
std::unique_ptr<Log> make_log(Level level, LogFormat format);
// Drops everything: for tests and offline tools.
std::unique_ptr<Log> make_null_log();

}  // namespace nezha::obs
