#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "base/clock.h"

namespace shoal {
namespace {

constexpr std::string_view kLevelNames[] = {"debug", "info", "warning", "error", "off"};

struct LogState {
  std::atomic<LogLevel> level = LogLevel::kInfo;
  std::mutex mutex;  // Lines of several threads must not run into each other.
  std::function<void(LogLevel, std::string_view)> sink;  // GUARDED_BY(mutex)
};

// The log is the one thing that every part may reach without being introduced to it. The state is
// never destroyed, so that destructors may still log while the process ends.
LogState& state() {
  alignas(LogState) static std::byte storage[sizeof(LogState)];
  static LogState* const instance = [] {
    auto* const made = std::construct_at(reinterpret_cast<LogState*>(storage));
    if (const char* text = std::getenv("SHOAL_LOG")) {
      if (const auto level = log_level_from_text(text); level.ok()) made->level = level.value();
    }
    return made;
  }();
  return *instance;
}

bool is_plain(std::string_view value) {
  if (value.empty()) return false;
  for (const unsigned char c : value) {
    if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c >= 0x7f) return false;
  }
  return true;
}

// Quotes a value. UTF-8 passes; bytes that could move a terminal's cursor or end the line do not.
void append_quoted(std::string& line, std::string_view value) {
  line += '"';
  for (const unsigned char c : value) {
    if (c == '"' || c == '\\') {
      line += '\\';
      line += static_cast<char>(c);
    } else if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (c < ' ' || c == 0x7f) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", c);
      line += escape;
    } else {
      line += static_cast<char>(c);
    }
  }
  line += '"';
}

void write_record(LogLevel level, std::string_view module, std::string_view event,
                  LogFields fields) {
  LogState& log = state();
  if (level < log.level.load(std::memory_order_relaxed)) return;
  std::string line = format_utc(SystemClock().now_wall());
  line += ' ';
  line += format_log_record(level, module, event, fields);
  const std::scoped_lock lock(log.mutex);
  if (log.sink) {
    log.sink(level, line);
  } else {
    line += '\n';
    // A full disk or a closed terminal loses the line, not the program.
    [[maybe_unused]] const size_t written = std::fwrite(line.data(), 1, line.size(), stderr);
  }
}

}  // namespace

LogField::LogField(std::string_view key, double value) : key(key) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  this->value = text;
}

void log_debug(std::string_view module, std::string_view event, LogFields fields) {
  write_record(LogLevel::kDebug, module, event, fields);
}
void log_info(std::string_view module, std::string_view event, LogFields fields) {
  write_record(LogLevel::kInfo, module, event, fields);
}
void log_warning(std::string_view module, std::string_view event, LogFields fields) {
  write_record(LogLevel::kWarning, module, event, fields);
}
void log_error(std::string_view module, std::string_view event, LogFields fields) {
  write_record(LogLevel::kError, module, event, fields);
}

LogLevel log_level() { return state().level; }
void set_log_level(LogLevel level) { state().level = level; }

Result<LogLevel> log_level_from_text(std::string_view text) {
  for (size_t i = 0; i < std::size(kLevelNames); ++i) {
    if (text == kLevelNames[i]) return static_cast<LogLevel>(i);
  }
  return Error{ErrorCode::kInvalid,
               "log level '" + std::string(text) + "' is none of debug, info, warning, error, off"};
}

void set_log_sink(std::function<void(LogLevel level, std::string_view line)> sink) {
  const std::scoped_lock lock(state().mutex);
  state().sink = std::move(sink);
}

std::string format_log_record(LogLevel level, std::string_view module, std::string_view event,
                              LogFields fields) {
  std::string line(kLevelNames[static_cast<size_t>(level)]);
  line += ' ';
  line += module;
  line += ' ';
  line += event;
  for (const LogField& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    if (is_plain(field.value)) {
      line += field.value;
    } else {
      append_quoted(line, field.value);
    }
  }
  return line;
}

}  // namespace shoal
