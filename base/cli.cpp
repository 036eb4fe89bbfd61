#include "base/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/host.h"
#include "base/text.h"

#ifndef SHOAL_VERSION
#error "base/CMakeLists.txt defines SHOAL_VERSION"
#endif

namespace shoal {

int exit_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalid: return 2;
    case ErrorCode::kNotFound: return 3;
    case ErrorCode::kDenied: return 4;
    case ErrorCode::kUnavailable:
    case ErrorCode::kTimeout: return 5;
    case ErrorCode::kNoSpace: return 6;
    case ErrorCode::kCorrupt: return 7;
    case ErrorCode::kExists:
    case ErrorCode::kUnsupported:
    case ErrorCode::kNonFinite:
    case ErrorCode::kIo: return 1;
  }
  SHOAL_UNREACHABLE();
}

int show_error(std::string_view program, const Error& error, bool json) {
  if (json) {
    const nlohmann::ordered_json object = {
        {"error", {{"code", error_code_name(error.code)}, {"message", error.message}}}};
    // Messages may quote what came from outside, which need not be UTF-8.
    std::cout << object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  } else {
    std::cerr << program << ": " << printable(error.message, /*keep_lines=*/true) << std::endl;
  }
  return exit_status(error.code);
}

namespace {

// The first word that stands where a command must, and is none; empty: there is none.
std::string unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  const CLI::App* here = &app;
  std::string so_far;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.starts_with('-')) {
      const std::string name = word.substr(0, word.find('='));
      const CLI::Option* option = nullptr;
      for (const CLI::App* at = here; at != nullptr && option == nullptr; at = at->get_parent()) {
        option = at->get_option_no_throw(name);
      }
      // Its value is no command.
      if (option != nullptr && name == word && option->get_items_expected_max() > 0) ++i;
      continue;
    }
    if (here->get_require_subcommand_min() == 0) return "";
    const std::vector<const CLI::App*> commands =
        here->get_subcommands([](const CLI::App*) { return true; });
    const auto known = std::ranges::find(commands, word, &CLI::App::get_name);
    if (known == commands.end()) return so_far + word;
    here = *known;
    so_far += word + " ";
  }
  return "";
}

}  // namespace

struct CommandLine::State {
  CLI::App app;
  bool json = false;
  Body body;
  std::function<Result<void>()> chosen;

  State(const std::string& summary, const std::string& program) : app(summary, program) {}
};

CommandLine::CommandLine(std::string program, std::string summary)
    : program_(std::move(program)), state_(std::make_unique<State>(summary, program_)) {
  CLI::App& app = state_->app;
  app.set_help_flag("-h,--help", "Show what can be asked, and end");
  app.set_version_flag("--version", program_ + " " SHOAL_VERSION, "Show the version, and end");
  app.add_flag("--json", state_->json, "Answer in JSON, for scripts");
  app.get_formatter()->column_width(36);
}

CommandLine::~CommandLine() = default;

CLI::App& CommandLine::app() { return state_->app; }
bool CommandLine::json() const { return state_->json; }

CLI::App& CommandLine::command(const std::string& name, const std::string& help, Body body) {
  return command(state_->app, name, help, std::move(body));
}

CLI::App& CommandLine::command(CLI::App& under, const std::string& name, const std::string& help,
                               Body body) {
  under.require_subcommand(1);
  CLI::App* const made = under.add_subcommand(name, help);
  made->fallthrough();  // --json may stand behind the command's name.
  made->final_callback([this, body = std::move(body)] { state_->chosen = body; });
  return *made;
}

CLI::App& CommandLine::group(const std::string& name, const std::string& help) {
  state_->app.require_subcommand(1);
  CLI::App* const made = state_->app.add_subcommand(name, help);
  made->fallthrough();
  made->require_subcommand(1);
  return *made;
}

void CommandLine::set_body(Body body) { state_->body = std::move(body); }

int CommandLine::run(int argc, const char* const* argv) {
  ignore_broken_pipes();
  try {  // CLI11 reports by exceptions; they end here.
    state_->app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help and --version.
    return state_->app.exit(asked);
  } catch (const CLI::ParseError& error) {
    // The flag may stand behind what could not be parsed.
    bool json = state_->json;
    for (int i = 1; i < argc; ++i) json |= std::string_view(argv[i]) == "--json";
    std::string message = error.what();
    while (message.ends_with('\n') || message.ends_with('.')) message.pop_back();
    if (const std::string word = unknown_command(state_->app, argc, argv); !word.empty()) {
      message = "there is no command '" + word + "'";
    }
    if (!json) message += "\nTry '" + program_ + " --help'";
    return show_error(program_, {ErrorCode::kInvalid, message}, json);
  }
  if (!state_->chosen) state_->chosen = state_->body;
  if (!state_->chosen) return 0;
  const Result<void> done = state_->chosen();
  if (!done.ok()) return show_error(program_, done.error(), state_->json);
  return 0;
}

}  // namespace shoal
