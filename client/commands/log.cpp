// log, bundle, sensors: what helps to find out what is wrong.

#include <algorithm>

#include "base/clock.h"
#include "base/files.h"
#include "base/text.h"
#include "client/commands/commands.h"
#include "client/commands/wire_json.h"
#include "client/commands/words.h"

namespace shoal::client {
namespace {

// --- log

struct LogQuestion {
  bool follow = false;
  std::string level = "info", module, text;
  uint32_t count = 200;
};

constexpr std::string_view kLevels[] = {"error", "warning", "info"};

size_t level_rank(std::string_view level) {
  return static_cast<size_t>(std::ranges::find(kLevels, level) - std::begin(kLevels));
}

bool is_wanted(rpc::LogLine::Reader line, const LogQuestion& question) {
  if (level_rank(line.getLevel().cStr()) > level_rank(question.level)) return false;
  if (!question.module.empty() && question.module != line.getModule().cStr()) return false;
  if (question.text.empty()) return true;
  const std::string all = std::string(line.getEvent().cStr()) + " " + line.getFields().cStr();
  return all.find(question.text) != std::string::npos;
}

std::string line_text(rpc::LogLine::Reader line) {
  std::string text = format_utc(Millis{line.getAtMs()}) + " " + line.getLevel().cStr() + " " +
                     line.getModule().cStr() + " " + line.getEvent().cStr();
  if (line.getFields().size() > 0) text += std::string(" ") + line.getFields().cStr();
  return printable(text);
}

Result<void> show_log(const CommandOptions& options, const LogQuestion& question) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    uint64_t after = 0;
    while (true) {
      auto request = session.agent.logRequest();
      request.setAfterId(after);
      // Lines are sifted here: of those kept, the newest `count` are asked for and fewer shown.
      request.setCountMax(question.count);
      const auto answer = session.ask(kj::mv(request));
      for (const auto line : answer.getLines()) {
        after = std::max(after, line.getId());
        if (!is_wanted(line, question)) continue;
        if (options.json) {
          print_json(
              json_of(capnp::toDynamic(line)));  // One object a line, so that it can be followed.
        } else {
          print_text(line_text(line));
        }
      }
      if (!question.follow || nobody_listens()) return {};
      session.loop.timer.afterDelay(500 * kj::MILLISECONDS).wait(session.loop.io.waitScope);
    }
  });
}

// --- bundle

Result<void> show_bundle(const CommandOptions& options, const std::string& file) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    const auto answer = session.ask(session.agent.bundleRequest(), 60 * kj::SECONDS);
    const std::string text = answer.getText().cStr();
    if (!file.empty()) {
      SHOAL_TRY(write_file_durably(file, as_bytes(text), 0600));
      if (options.json) {
        print_json(Json{{"file", file}, {"bytes", text.size()}});
      } else {
        print_text("Written to " + printable(file) +
                   ". Look through it before you send it to anybody.");
      }
      return {};
    }
    if (options.json) {
      print_json(Json{{"text", text}});
    } else {
      print_text(printable(text, /*keep_lines=*/true));
    }
    return {};
  });
}

// --- sensors

void add_sensor(Table& table, rpc::Sensor::Reader sensor, bool backends) {
  const auto add = [&table](const std::string& name, const std::string& backend, bool known,
                            rpc::Message::Reader value, const std::string& problem, Cell age) {
    table.add({name,
               {backend.empty() ? "-" : backend, backend},
               {known ? sentence(value) : "not known", known ? Json(sentence(value)) : Json()},
               std::move(age),
               problem});
  };
  add(sensor.getName().cStr(), sensor.getBackend().cStr(), sensor.getKnown(), sensor.getValue(),
      sensor.getProblem().cStr(),
      {text_of(Millis{static_cast<int64_t>(sensor.getAgeMs())}), sensor.getAgeMs()});
  if (!backends) return;
  for (const auto backend : sensor.getBackends()) {
    add(std::string(sensor.getName().cStr()) + "?", backend.getName().cStr(), backend.getUsable(),
        backend.getValue(), backend.getProblem().cStr(), {"", Json()});
  }
}

Result<void> show_sensors(const CommandOptions& options, const std::string& name) {
  return ask_agent(options, [&](AgentSession& session) -> Result<void> {
    Table table({{"sensor", "SENSOR"},
                 {"backend", "BACKEND"},
                 {"value", "VALUE"},
                 {"age_ms", "AGE"},
                 {"problem", "PROBLEM"}});
    if (name.empty()) {
      const auto answer = session.ask(session.agent.snapshotRequest());
      for (const auto sensor : answer.getSnapshot().getSensors()) add_sensor(table, sensor, false);
      if (options.json) {
        print_json(Json{{"sensors", json_of(capnp::toDynamic(answer.getSnapshot()))["sensors"]}});
      } else {
        print_text(table.empty() ? "No sensor has answered yet." : table.text());
      }
      return {};
    }
    auto request = session.agent.testSensorRequest();
    request.setName(name);
    const auto answer = session.ask(kj::mv(request));
    const auto sensor = answer.getSensor();
    if (sensor.getName().size() == 0) {
      return Error{ErrorCode::kNotFound, "there is no sensor '" + name + "'"};
    }
    add_sensor(table, sensor, true);
    if (options.json) {
      print_json(json_of(capnp::toDynamic(sensor)));
    } else {
      print_text(table.text());
    }
    return {};
  });
}

}  // namespace

void add_log_commands(Commands& commands) {
  LogQuestion& log = commands.keep<LogQuestion>();
  CLI::App& log_command =
      commands.add("log", "The newest lines of the client's log",
                   [&log](const CommandOptions& options) { return show_log(options, log); });
  log_command.add_flag("--follow", log.follow, "Then go on with new ones, until interrupted");
  log_command.add_option("--level", log.level, "error, warning or info: this and what is worse")
      ->check(CLI::IsMember({"error", "warning", "info"}));
  log_command.add_option("--module", log.module, "Only of this module, such as agent or link");
  log_command.add_option("--text", log.text, "Only those with this text");
  log_command.add_option("--count", log.count, "How many to look through")
      ->check(CLI::Range(1, 5'000));

  std::string& file = commands.keep<std::string>();
  commands
      .add("bundle", "What a bug report needs, without keys, invites, addresses and names",
           [&file](const CommandOptions& options) { return show_bundle(options, file); })
      .add_option("--output", file, "Write it to this file");

  std::string& sensor = commands.keep<std::string>();
  commands
      .add("sensors", "What is known of this computer and its owner, and from where",
           [&sensor](const CommandOptions& options) { return show_sensors(options, sensor); })
      .add_option("--test", sensor, "Ask one sensor anew, each of its backends, such as idle");
}

}  // namespace shoal::client
