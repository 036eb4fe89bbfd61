#pragma once
// Says what a simulated run came to: one JSON object, a table, plots.

#include <filesystem>
#include <string>

#include "base/result.h"
#include "coordinator/sim/world.h"

namespace shoal::sim {

// One line. `wall_s`: how long the run took.
std::string report_json(const Report& report, double wall_s);

// For a person.
std::string report_table(const Report& report, double wall_s);

// SVG files into a folder, which is made.
Result<void> write_plots(const Report& report, const std::filesystem::path& folder);

}  // namespace shoal::sim
