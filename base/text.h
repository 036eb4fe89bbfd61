#pragma once
// Which text may be shown as it is. Text from files and peers can hold orders to a terminal.

#include <string>
#include <string_view>

namespace shoal {

// A copy in which '?' stands for every control character, every mark that turns the direction of
// writing, and every byte that is not UTF-8. Tabs and line ends stay when `keep_lines`.
std::string printable(std::string_view text, bool keep_lines = false);

// Whether printable() would change nothing.
bool is_printable(std::string_view text);

}  // namespace shoal
