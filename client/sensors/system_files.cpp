#include "client/sensors/system_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>
#include <cstdlib>

#include <algorithm>
#include <bit>
#include <charconv>
#include <memory>

namespace shoal::client {
namespace {

constexpr size_t kProcessesMax = 1 << 20;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

template <class Take>
void for_each_name(const std::filesystem::path& path, const Take& take) {
  const std::unique_ptr<DIR, CloseFolder> folder(opendir(path.c_str()));
  if (folder == nullptr) return;
  while (const dirent* entry = readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (!take(name)) return;
  }
}

template <class Keep>
std::vector<std::string_view> split(std::string_view text, const Keep& ends) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const auto end = std::ranges::find_if(text, ends);
    const auto length = static_cast<size_t>(end - text.begin());
    if (length > 0) parts.push_back(text.substr(0, length));
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return parts;
}

}  // namespace

std::string environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<std::string> read_small_file(const std::filesystem::path& path, size_t bytes_max) {
  const OwnedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return {};
  std::string text;
  char piece[4'096];
  while (text.size() < bytes_max) {
    const ssize_t got = read(fd.get(), piece, std::min(sizeof piece, bytes_max - text.size()));
    if (got < 0) return {};
    if (got == 0) break;
    text.append(piece, static_cast<size_t>(got));
  }
  return text;
}

std::optional<std::string> read_word(const std::filesystem::path& path) {
  std::optional<std::string> text = read_small_file(path, 256);
  if (!text) return {};
  while (!text->empty() && is_blank(text->back())) text->pop_back();
  text->erase(text->begin(), std::ranges::find_if_not(*text, is_blank));
  return text;
}

std::optional<int64_t> read_number(const std::filesystem::path& path) {
  const std::optional<std::string> word = read_word(path);
  return word ? parse_number(*word) : std::nullopt;
}

std::optional<int64_t> parse_number(std::string_view text, int base) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number, base);
  if (text.empty() || result.ec != std::errc() || result.ptr != end) return {};
  return number;
}

int64_t coarse(int64_t count) {
  if (count <= 0) return count;
  constexpr uint64_t kSteps = 128;
  const auto whole = static_cast<uint64_t>(count);
  const uint64_t step = std::max<uint64_t>(std::bit_floor(whole) / kSteps, 1);
  return static_cast<int64_t>(whole / step * step);
}

std::vector<std::string_view> split_words(std::string_view text) { return split(text, is_blank); }

std::vector<std::string_view> split_lines(std::string_view text) {
  return split(text, [](char c) { return c == '\n'; });
}

std::vector<std::string> names_in(const std::filesystem::path& folder, size_t count_max) {
  std::vector<std::string> names;
  for_each_name(folder, [&](std::string_view name) {
    names.emplace_back(name);
    return names.size() < count_max;
  });
  std::ranges::sort(names);
  return names;
}

std::vector<int64_t> process_ids(const std::filesystem::path& proc) {
  std::vector<int64_t> ids;
  for_each_name(proc, [&](std::string_view name) {
    if (name[0] >= '0' && name[0] <= '9') {
      if (const auto id = parse_number(name)) ids.push_back(*id);
    }
    return ids.size() < kProcessesMax;
  });
  return ids;
}

OwnedFd open_folder(const std::filesystem::path& path) {
  return OwnedFd(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

std::optional<std::string> link_target(int folder, const std::string& name) {
  char target[4'096];
  const ssize_t length = readlinkat(folder, name.c_str(), target, sizeof target);
  if (length <= 0 || static_cast<size_t>(length) >= sizeof target) return {};
  return std::string(target, static_cast<size_t>(length));
}

}  // namespace shoal::client
