#pragma once
// The frame of every command line program: --help, --version, --json, subcommands, and the one
// place that shows an error to a person or a script. Options are CLI11's own: include <CLI/CLI.hpp>
// to add them.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace CLI {
class App;
}

namespace shoal {

// 0 all went well · 1 any other failure · 2 asked wrongly · 3 not found · 4 refused · 5 not now or
// too late · 6 no space · 7 corrupt data
int exit_status(ErrorCode code);

// "program: message" on stderr, or {"error":{"code":…,"message":…}} on stdout for a script. Returns
// the exit status.
int show_error(std::string_view program, const Error& error, bool json);

class CommandLine {
 public:
  // What a command does once its options are read.
  using Body = std::function<Result<void>()>;

  CommandLine(std::string program, std::string summary);
  ~CommandLine();

  CLI::App& app();    // For options of the program itself.
  bool json() const;  // Whether --json was given; valid inside a Body.
  const std::string& program() const { return program_; }

  // A subcommand; `body` runs when it was the one given. `under` makes "model publish" of "model".
  CLI::App& command(const std::string& name, const std::string& help, Body body);
  CLI::App& command(CLI::App& under, const std::string& name, const std::string& help, Body body);
  // A word that only groups subcommands.
  CLI::App& group(const std::string& name, const std::string& help);
  // The program's own act, when it has no subcommands.
  void set_body(Body body);

  // Parses, runs the body, shows its error. What main() returns.
  int run(int argc, const char* const* argv);

 private:
  struct State;
  std::string program_;
  std::unique_ptr<State> state_;
};

}  // namespace shoal
