#pragma once
// Holds templates with what Jinja 3.1.6 prints for them. A file of its own, as Qt's moc does not
// understand all of its texts.

#include <span>
#include <string_view>

namespace shoal {

struct Example {
  std::string_view name, source, printed;
};

// Every example has these variables, and 2026-12-01 00:30:05 UTC for strftime_now.
extern const std::string_view kExampleVariables;
std::span<const Example> examples();

}  // namespace shoal
