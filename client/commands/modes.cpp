// pause, resume, mode, leave-by, stop: what the owner chooses at this moment.

#include "base/clock.h"
#include "client/commands/commands.h"
#include "client/commands/words.h"

namespace shoal::client {
namespace {

struct Choice {
  bool gpu = false, cpu = false, network = false;
  std::string word;   // A mode, a duration or a time.
  std::string lasts;  // --for

  // Those that were named; all when none was.
  std::vector<rpc::Resource> resources() const {
    const bool all = !gpu && !cpu && !network;
    std::vector<rpc::Resource> named;
    if (all || gpu) named.push_back(rpc::Resource::GPU);
    if (all || cpu) named.push_back(rpc::Resource::CPU);
    if (all || network) named.push_back(rpc::Resource::NETWORK);
    return named;
  }
};

void add_resource_flags(CLI::App& command, Choice& choice) {
  command.add_flag("--gpu", choice.gpu, "Graphics cards only");
  command.add_flag("--cpu", choice.cpu, "The processor only");
  command.add_flag("--network", choice.network, "The network only");
}

Result<void> set_mode(const CommandOptions& options, const Choice& choice, rpc::Mode mode,
                      Millis lasts) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    for (const rpc::Resource resource : choice.resources()) {
      auto request = session.agent.setModeRequest();
      request.setResource(resource);
      request.setMode(mode);
      request.setForMs(static_cast<uint64_t>(lasts.count));
      session.ask(kj::mv(request));
    }
    Json names = Json::array();
    std::string text;
    for (const rpc::Resource resource : choice.resources()) {
      names.push_back(word_of(resource));
      text += (text.empty() ? "" : ", ") + std::string(word_of(resource));
    }
    if (options.json) {
      print_json(Json{{"mode", word_of(mode)}, {"resources", names}, {"for_ms", lasts.count}});
      return {};
    }
    switch (mode) {
      case rpc::Mode::BY_RULES: text += ": by your rules"; break;
      case rpc::Mode::ALWAYS: text += ": always, whoever uses this computer"; break;
      case rpc::Mode::PAUSED: text += ": paused"; break;
    }
    if (lasts.count > 0) {
      text += ", until " + format_local_minute(SystemClock().now_wall() + lasts);
    } else if (mode == rpc::Mode::PAUSED) {
      text += ", until you resume it: shoal-client resume";
    }
    print_text(text);
    return {};
  });
}

Result<void> resume(const CommandOptions& options, const Choice& choice) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    Json names = Json::array();
    std::string text;
    for (const rpc::Resource resource : choice.resources()) {
      auto request = session.agent.resumeRequest();
      request.setResource(resource);
      session.ask(kj::mv(request));
      names.push_back(word_of(resource));
      text += (text.empty() ? "" : ", ") + std::string(word_of(resource));
    }
    if (options.json) {
      print_json(Json{{"resumed", names}});
    } else {
      print_text(text + ": as before the pause");
    }
    return {};
  });
}

// Empty: for ever, which is 0 on the wire.
Result<Millis> parse_lasting(const std::string& text) {
  if (text.empty() || text == "until-resumed") return Millis{0};
  return parse_duration(text);
}

Result<void> leave_by(const CommandOptions& options, const std::string& word) {
  Millis at{0};
  if (word != "off") {
    SHOAL_TRY_ASSIGN(parsed, parse_next_time(word, SystemClock().now_wall()));
    at = parsed;
  }
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    auto request = session.agent.setLeaveByRequest();
    request.setAtMs(at.count);
    session.ask(kj::mv(request));
    if (options.json) {
      print_json(Json{{"leave_by_ms", at.count}});
    } else if (at.count == 0) {
      print_text("There is no time to leave by.");
    } else {
      print_text("Nothing computes after " + format_local_minute(at) +
                 ", and until then only what ends before.");
    }
    return {};
  });
}

Result<void> stop(const CommandOptions& options) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    session.ask(session.agent.stopRequest());
    if (options.json) {
      print_json(Json{{"stops", true}});
    } else {
      print_text("The client gives its work back and ends.");
    }
    return {};
  });
}

}  // namespace

void add_mode_commands(Commands& commands) {
  Choice& pause = commands.keep<Choice>();
  CLI::App& pause_command =
      commands.add("pause", "Compute nothing until a time, or until resumed",
                   [&pause](const CommandOptions& options) -> Result<void> {
                     SHOAL_TRY_ASSIGN(lasts, parse_lasting(pause.word));
                     return set_mode(options, pause, rpc::Mode::PAUSED, lasts);
                   });
  pause_command.add_option("for", pause.word, "Such as 15m, 1h, 2d or until-resumed (the default)");
  add_resource_flags(pause_command, pause);

  Choice& choice = commands.keep<Choice>();
  add_resource_flags(
      commands.add("resume", "End a pause, or a mode for a time: what was before holds again",
                   [&choice](const CommandOptions& options) { return resume(options, choice); }),
      choice);

  Choice& mode = commands.keep<Choice>();
  CLI::App& mode_command = commands.add("mode", "Work always, by the rules, or not at all",
                                        [&mode](const CommandOptions& options) -> Result<void> {
                                          SHOAL_TRY_ASSIGN(lasts, parse_lasting(mode.lasts));
                                          const rpc::Mode wanted =
                                              mode.word == "always"   ? rpc::Mode::ALWAYS
                                              : mode.word == "paused" ? rpc::Mode::PAUSED
                                                                      : rpc::Mode::BY_RULES;
                                          return set_mode(options, mode, wanted, lasts);
                                        });
  mode_command.add_option("mode", mode.word, "always, rules or paused")
      ->required()
      ->check(CLI::IsMember({"always", "rules", "paused"}));
  mode_command.add_option("--for", mode.lasts, "Then as before: such as 90s, 15m, 1h, 2d");
  add_resource_flags(mode_command, mode);

  std::string& time = commands.keep<std::string>();
  commands
      .add("leave-by", "Take only work that ends before a time, and then none",
           [&time](const CommandOptions& options) { return leave_by(options, time); })
      .add_option("time", time, "Such as 18:00; off: no such time")
      ->required();

  commands.add("stop", "End the client that runs, in order", stop);
}

}  // namespace shoal::client
