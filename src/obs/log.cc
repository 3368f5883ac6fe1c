// Log by spdlog: this file makes the text of a line, spdlog adds the time and writes it whole to standard error.
#include "nezha/obs/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "src/obs/json_text.h"

namespace nezha::obs {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarning:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarning:
      return "warning";
    case Level::kError:
      return "error";
  }
  return "error";
}

// Everything of a JSON line after the time: `"level":"info","message":"…","key":"value"}`.
std::string json_rest(Level level, std::string_view message, std::initializer_list<Field> fields) {
  std::string out = "\"level\":\"";
  out += level_name(level);
  out += "\",\"message\":";
  append_json_string(out, message);
  for (const auto& [key, value] : fields) {
    out += ',';
    append_json_string(out, key);
    out += ':';
    append_json_string(out, value);
  }
  out += '}';
  return out;
}

// A control character in a message would end the line or drive the terminal: such a message is quoted.
void append_message(std::string& out, std::string_view message) {
  for (const char c : message)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return append_json_string(out, message);
  out += message;
}

std::string text_rest(Level level, std::string_view message, std::initializer_list<Field> fields) {
  std::string out(level_name(level));
  out += ' ';
  append_message(out, message);
  for (const auto& [key, value] : fields) {
    out += ' ';
    append_plain_or_quoted(out, key);
    out += '=';
    append_plain_or_quoted(out, value);
  }
  return out;
}

class SpdLog final : public Log {
 public:
  SpdLog(Level level, LogFormat format)
      : format_(format), logger_("nezha", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    const bool json = format == LogFormat::kJson;
    const char* pattern = json ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",%v" : "%Y-%m-%dT%H:%M:%S.%eZ %v";
    logger_.set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
    logger_.set_level(to_spdlog(level));
    logger_.flush_on(spdlog::level::debug);  // the last lines before a crash are the ones wanted
  }

  void write(Level level, std::string_view message, std::initializer_list<Field> fields) override {
    if (!logger_.should_log(to_spdlog(level))) return;
    const bool json = format_ == LogFormat::kJson;
    const std::string rest = json ? json_rest(level, message, fields) : text_rest(level, message, fields);
    logger_.log(to_spdlog(level), spdlog::string_view_t(rest.data(), rest.size()));
  }

 private:
  const LogFormat format_;
  spdlog::logger logger_;
};

class NullLog final : public Log {
 public:
  void write(Level, std::string_view, std::initializer_list<Field>) override {}
};

}  // namespace

std::unique_ptr<Log> make_log(Level level, LogFormat format) { return std::make_unique<SpdLog>(level, format); }
std::unique_ptr<Log> make_null_log() { return std::make_unique<NullLog>(); }

}  // namespace nezha::obs
