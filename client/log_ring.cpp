#include "client/log_ring.h"

#include "base/text.h"

namespace shoal::client {
namespace {

constexpr std::string_view kLevels[] = {"debug", "info", "warning", "error", "off"};

// The next word of `line`, which loses it.
std::string_view take_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

std::string LogLine::text() const {
  std::string line = format_utc(at) + " " + std::string(kLevels[static_cast<size_t>(level)]) + " " +
                     module + " " + event;
  if (!fields.empty()) line += " " + fields;
  return line;
}

LogRing::LogRing(const Clock& clock, std::filesystem::path folder) : clock_(clock) {
  if (!folder.empty()) path_ = std::move(folder) / "client.log";
}

void LogRing::add(LogLevel level, std::string_view line) {
  write(line);
  (void)take_word(line);  // The time.
  (void)take_word(line);  // The level.
  LogLine entry;
  entry.id = next_++;
  entry.at = clock_.now_wall();
  entry.level = level;
  entry.module = printable(cut_utf8(take_word(line), 64));
  entry.event = printable(cut_utf8(take_word(line), 64));
  entry.fields = printable(cut_utf8(line, kFieldsBytesMax));
  lines_.push_back(std::move(entry));
  if (lines_.size() > kLinesMax) lines_.pop_front();
}

void LogRing::write(std::string_view line) {
  if (path_.empty()) return;
  std::error_code code;
  if (file_ && file_->size() + line.size() + 1 > kFileBytesMax) {
    file_.reset();
    std::filesystem::rename(path_, path_.string() + ".1", code);
    if (code) std::filesystem::remove(path_, code);
  }
  if (!file_) {
    Result<AppendFile> opened = AppendFile::open(path_);
    if (!opened.ok()) return;
    file_ = std::move(opened).value();
  }
  std::string text(line.substr(0, kFileBytesMax / 2));
  text += '\n';
  (void)file_->append(as_bytes(text)).ok();
}

std::vector<LogLine> LogRing::after(uint64_t after, size_t count_max) const {
  std::vector<LogLine> found;
  const uint64_t oldest = next_ - lines_.size();
  const uint64_t first = std::max({after + 1, oldest, next_ > count_max ? next_ - count_max : 1});
  for (uint64_t id = first; id < next_; ++id) found.push_back(lines_[id - oldest]);
  return found;
}

}  // namespace shoal::client
