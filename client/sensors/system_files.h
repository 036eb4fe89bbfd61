#pragma once
// Reads what the kernel shows as small files, and trusts none of it: lengths are bounded, numbers
// checked.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"

namespace shoal::client {

// Empty when it is not set.
std::string environment(const char* name);

// The beginning of the file, at most `bytes_max`; none when it cannot be read. Such files report no
// size, so it is read to its end.
std::optional<std::string> read_small_file(const std::filesystem::path& path,
                                           size_t bytes_max = 4'096);
// Without blanks around it.
std::optional<std::string> read_word(const std::filesystem::path& path);
std::optional<int64_t> read_number(const std::filesystem::path& path);

// The whole of `text` as a number of that base.
std::optional<int64_t> parse_number(std::string_view text, int base = 10);

// To within a hundredth, never more than it is: what hardly changes is said in the same words, and
// nobody wakes for it.
int64_t coarse(int64_t count);

std::vector<std::string_view> split_words(std::string_view text);
std::vector<std::string_view> split_lines(std::string_view text);

// The names in a folder, sorted; at most `count_max`. Empty when there is none.
std::vector<std::string> names_in(const std::filesystem::path& folder, size_t count_max = 1'024);

// The names in /proc that are processes.
std::vector<int64_t> process_ids(const std::filesystem::path& proc);

// For link_target(). Holds none when there is no such folder.
OwnedFd open_folder(const std::filesystem::path& path);
// The target of a symbolic link within an open folder.
std::optional<std::string> link_target(int folder, const std::string& name);

}  // namespace shoal::client
