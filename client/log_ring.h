#pragma once
// Holds the newest lines of the log for who looks at it, and writes all of them to a file that
// never grows beyond its bound. A disk that is full costs lines of the file, nothing else.
//
// Belongs to one thread. No other may log while it is the log's sink.

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"

namespace shoal::client {

struct LogLine {
  uint64_t id = 0;  // Counts from 1.
  Millis at{0};     // Wall time.
  LogLevel level = LogLevel::kInfo;
  std::string module, event, fields;

  std::string text() const;  // As in the file.
};

class LogRing {
 public:
  static constexpr size_t kLinesMax = 5'000;
  static constexpr size_t kFieldsBytesMax = 2'000;    // Of one line.
  static constexpr uint64_t kFileBytesMax = 2 << 20;  // Of "client.log"; one older file is kept.

  // `folder`: where "client.log" is; empty: nowhere. `clock` outlives the ring.
  LogRing(const Clock& clock, std::filesystem::path folder);

  // A line as base/log.h makes it: "time level module event key=value ...".
  void add(LogLevel level, std::string_view line);

  uint64_t newest() const { return next_ - 1; }
  // The newest `count_max` with an id after `after`, oldest first.
  std::vector<LogLine> after(uint64_t after, size_t count_max) const;

 private:
  void write(std::string_view line);

  const Clock& clock_;
  std::filesystem::path path_;  // Empty: none.
  std::optional<AppendFile> file_;
  uint64_t next_ = 1;
  std::deque<LogLine> lines_;
};

}  // namespace shoal::client
