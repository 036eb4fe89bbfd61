#pragma once
// The door to the client: the daemon, and the command line that speaks to it.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace shoal::client {

// What every command knows, however it was asked for.
struct CommandOptions {
  std::optional<std::filesystem::path>
      data;  // All folders below this one; none: the user's own (XDG).
  bool json = false;
  std::vector<std::string> devices;  // Instead of the settings'.
  std::optional<int> threads;        // Instead of the settings'.
  // How `run` works until the owner chooses otherwise: "rules", "always" or "paused".
  std::string mode = "rules";
  std::string remote;  // Which other machine's client to ask; empty: this one's.
};

// Serves until SIGTERM, SIGINT, or a user interface ends it.
Result<void> run_client(const CommandOptions& options);

// Reads the arguments, does what they ask, prints the answer as text, CSV or JSON. What main()
// returns.
int run_command_line(int argc, const char* const* argv);

}  // namespace shoal::client
