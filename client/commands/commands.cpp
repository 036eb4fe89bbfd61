#include "client/commands/commands.h"

#include <iostream>

namespace shoal::client {

Commands::Commands(CommandLine& line) : line_(line) {
  CLI::App& app = line.app();
  app.add_option("--data", data_, "Keep configuration, state, cache and sockets below this folder");
  app.add_option("--remote", options_.remote,
                 "Ask the client of another machine, by the URL of 'shoal-client pair' there; once "
                 "paired, shoal+pair://host:port is enough");
}

CommandLine::Body Commands::with_options(Body body) {
  return [this, body = std::move(body)]() -> Result<void> {
    if (!data_.empty()) options_.data = data_;
    if (threads_ >= 0) options_.threads = threads_;
    options_.json = line_.json();
    return body(options_);
  };
}

CLI::App& Commands::group(const std::string& name, const std::string& help) {
  return line_.group(name, help);
}

CLI::App& Commands::add(const std::string& name, const std::string& help, Body body) {
  return line_.command(name, help, with_options(std::move(body)));
}

CLI::App& Commands::add(CLI::App& group, const std::string& name, const std::string& help,
                        Body body) {
  return line_.command(group, name, help, with_options(std::move(body)));
}

void Commands::add_device_options(CLI::App& command, const char* names) {
  command
      .add_option(
          names, options_.devices,
          "Devices by id, selector or plane, such as cpu,vulkan:0; instead of the settings'")
      ->delimiter(',');
  command.add_option("--threads", threads_, "Threads for computing on the CPU; 0: all cores")
      ->check(CLI::Range(0, 1024));
}

namespace {

Result<void> ask_remote_agent(const CommandOptions& options, const Workplace& place,
                              const AgentBody& body) {
  SHOAL_TRY_ASSIGN(url, find_remote(place, options.remote));
  return with_loop<void>([&](Loop loop) -> Result<void> {
    kj::Own<rpc::Connection> connection =
        rpc::dial_tls(loop.io.provider->getNetwork(), loop.timer, url).wait(loop.io.waitScope);
    AgentSession session{loop, open_remote_agent(loop, *connection, place, url)};
    return body(session);
  });
}

}  // namespace

DeviceNames::DeviceNames(AgentSession& session) {
  const auto answer = session.ask(session.agent.snapshotRequest());
  for (const auto device : answer.getSnapshot().getDevices()) {
    const auto info = device.getReport().getInfo();
    if (info.getSelector().size() > 0) selectors_[info.getId().cStr()] = info.getSelector().cStr();
  }
}

std::string DeviceNames::of(const std::string& id) const {
  const auto known = selectors_.find(id);
  return known == selectors_.end() ? id : known->second;
}

Result<std::optional<FileLock>> ask_or_lock(const CommandOptions& options, const Workplace& place,
                                            const AgentBody& body) {
  if (!options.remote.empty()) {
    SHOAL_TRY(ask_remote_agent(options, place, body));
    return std::optional<FileLock>();
  }
  Result<FileLock> lock = FileLock::acquire(place.lock());
  if (is_taken(lock)) {
    SHOAL_TRY(with_agent(place, [&body](Loop loop, rpc::Agent::Client agent) -> Result<void> {
      AgentSession session{loop, kj::mv(agent)};
      return body(session);
    }));
    return std::optional<FileLock>();
  }
  if (!lock.ok()) return lock.error();
  return std::optional<FileLock>(std::move(lock).value());
}

Result<void> ask_agent(const CommandOptions& options, const AgentBody& body) {
  SHOAL_TRY_ASSIGN(place, open_workplace(options));
  SHOAL_TRY_ASSIGN(lock, ask_or_lock(options, place, body));
  if (!lock) return {};
  return Error{ErrorCode::kUnavailable, "no client runs on " + place.folders.state.string() +
                                            ": start one with shoal-client run"};
}

Result<void> refuse_remote(const CommandOptions& options) {
  if (options.remote.empty()) return {};
  return Error{ErrorCode::kInvalid, "this command is for this machine alone: leave out --remote"};
}

void print_json(const Json& json) {
  std::cout << json.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
}

void print_text(const std::string& text) {
  std::cout << text;
  if (!text.ends_with('\n')) std::cout << '\n';
  std::cout << std::flush;
}

bool nobody_listens() { return !std::cout; }

void add_run_command(Commands& commands) {
  CLI::App& run = commands.add("run", "Lend the devices until told to stop (SIGTERM)",
                               [](const CommandOptions& options) -> Result<void> {
                                 SHOAL_TRY(refuse_remote(options));
                                 return run_client(options);
                               });
  commands.add_device_options(run, "--devices");
  run.add_option(
         "--mode", commands.options().mode,
         "How to work until the owner chooses otherwise: by the rules, always (for servers: "
         "whoever uses the computer), or not")
      ->check(CLI::IsMember({"rules", "always", "paused"}));
}

int run_command_line(int argc, const char* const* argv) {
  CommandLine line("shoal-client", "Lends this machine's devices to large language models");
  Commands commands(line);
  add_run_command(commands);
  add_status_command(commands);
  add_mode_commands(commands);
  add_coordinator_commands(commands);
  add_device_commands(commands);
  add_rule_commands(commands);
  add_record_commands(commands);
  add_log_commands(commands);
  add_remote_commands(commands);
  return line.run(argc, argv);
}

}  // namespace shoal::client
