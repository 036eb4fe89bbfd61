#pragma once
// Asks the system what this user may do with a path. An answer of this moment: who acts on it still
// meets refusals.

#include <filesystem>

namespace shoal {

bool may_run(const std::filesystem::path& program);
bool may_write_in(const std::filesystem::path& folder);

}  // namespace shoal
