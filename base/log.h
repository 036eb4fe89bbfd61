#pragma once
// One-line records for people and for grep: "time level module event key=value ...", to stderr.
// Never logs secrets or prompt text: what is not handed in cannot be written out.

#include <concepts>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace shoal {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff };

struct LogField {
  std::string_view key;  // A literal: lower_case, no spaces.
  std::string value;

  LogField(std::string_view key, std::string_view value) : key(key), value(value) {}
  LogField(std::string_view key, const char* value) : key(key), value(value) {}
  LogField(std::string_view key, const std::string& value) : key(key), value(value) {}
  LogField(std::string_view key, bool value) : key(key), value(value ? "true" : "false") {}
  template <std::integral T>
  LogField(std::string_view key, T value) : key(key), value(std::to_string(value)) {}
  LogField(std::string_view key, double value);
  LogField(std::string_view key, const Error& error) : key(key), value(error.message) {}
  template <class Tag>
  LogField(std::string_view key, Quantity<Tag> value) : LogField(key, value.count) {}
  template <class Tag>
  LogField(std::string_view key, Id<Tag> id) : LogField(key, id.value) {}
};

using LogFields = std::initializer_list<LogField>;

// Any thread. Whatever happens to stderr, the caller goes on.
void log_debug(std::string_view module, std::string_view event, LogFields fields = {});
void log_info(std::string_view module, std::string_view event, LogFields fields = {});
void log_warning(std::string_view module, std::string_view event, LogFields fields = {});
void log_error(std::string_view module, std::string_view event, LogFields fields = {});

// The lowest level written. At start: what the environment's SHOAL_LOG says (debug, info, warning,
// error, off), or info.
LogLevel log_level();
void set_log_level(LogLevel level);
Result<LogLevel> log_level_from_text(std::string_view text);

// Sends the records elsewhere: to a ring that a window shows, to a test. An empty sink means
// stderr. The sink is called by one thread at a time and must not log.
void set_log_sink(std::function<void(LogLevel level, std::string_view line)> sink);

// The record without its time; values with spaces, quotes or control bytes are quoted and escaped.
std::string format_log_record(LogLevel level, std::string_view module, std::string_view event,
                              LogFields fields);

}  // namespace shoal
