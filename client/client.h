#pragma once
// The door to the client: what its command line can do. Each prints its answer, as tables for
// people or as JSON for scripts.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace shoal::client {

struct CommandOptions {
  std::optional<std::filesystem::path>
      data;  // All folders below this one; none: the user's own (XDG).
  bool json = false;
  std::vector<std::string> devices;  // Instead of the settings'.
  std::optional<int> threads;        // Instead of the settings'.
  // How `run` works until the owner chooses otherwise: "rules", "always" or "paused".
  std::string mode = "rules";
};

// Serves until SIGTERM, SIGINT, or a user interface ends it.
Result<void> run_client(const CommandOptions& options);

Result<void> attach_client(const CommandOptions& options, const std::string& url);
Result<void> detach_client(const CommandOptions& options, const std::string& url);  // Empty: all.
Result<void> show_devices(const CommandOptions& options);
Result<void> run_benchmark(const CommandOptions& options);
Result<void> show_status(const CommandOptions& options);

}  // namespace shoal::client
