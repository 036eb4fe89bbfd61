#pragma once
// Which text may be shown as it is. Text from files and peers can hold orders to a terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace shoal {

// A copy in which '?' stands for every control character, every mark that turns the direction of
// writing, and every byte that is not UTF-8. Tabs and line ends stay when `keep_lines`.
std::string printable(std::string_view text, bool keep_lines = false);

// Whether printable() would change nothing.
bool is_printable(std::string_view text);

// The beginning of `text`, at most `bytes_max` long, that ends with a whole UTF-8 character.
std::string_view cut_utf8(std::string_view text, size_t bytes_max);

}  // namespace shoal
