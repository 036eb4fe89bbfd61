#pragma once
// Where the models and texts are that tests use and the repository does not hold.

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace shoal {

// SHOAL_SHARED_DATA, or ../shared/data beside the checkout or beside a worktree's parent; empty
// where there is none: then the test skips.
inline std::optional<std::filesystem::path> shared_data() {
  const std::string source = SHOAL_SOURCE_DIR;
  const char* const given = std::getenv("SHOAL_SHARED_DATA");
  for (const std::filesystem::path place :
       {std::string(given == nullptr ? "" : given), source + "/../shared/data",
        source + "/../../shared/data"}) {
    std::error_code ignored;
    if (std::filesystem::exists(place / "stories260K", ignored)) return place;
  }
  return std::nullopt;
}

}  // namespace shoal
